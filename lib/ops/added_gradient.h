// The gradient of a tensor, for ops that can only add to it: the tensor in which the tape sums the
// gradient, or else zeros, which finish() adds to the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// `of` must outlive this object.
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
