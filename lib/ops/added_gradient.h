// The gradient of a tensor, for ops that can only add to it: where it is summed already, or zeros,
// which finish() hands over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// Of a tensor that must outlive it.
class AddedGradient {
 public:
  AddedGradient(Tape& tape, const Tensor& of);
  /// Undefined if no gradient is wanted.
  const Tensor& tensor() const { return tensor_; }
  float* data() const { return tensor_.data<float>(); }
  void finish() const {
    if (own_) tape_.accumulate(of_, tensor_);
  }

 private:
  Tape& tape_;
  const Tensor& of_;
  Tensor tensor_;
  bool own_ = false;
};

}  // namespace vfm::ops
