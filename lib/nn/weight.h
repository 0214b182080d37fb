// A weight as an op takes it: one parameter, or several of one width stacked into one matrix, so
// that the projections to queries, keys and values are one product.
//
// Initialisation is a function of (seed, parameter name), so that equal names get equal values in
// any model, in any order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "nn/parameter.h"
#include "ops/tape.h"

namespace vfm::nn {

/// How the elements of a new parameter are drawn.
enum class Init {
  zero,
  one,
  xavier,  ///< uniform in +-sqrt(6 / (rows + columns))
  normal,  ///< standard deviation 0.02
};

class Weight {
 public:
  /// One tensor a name, all of shape `each`, one under the other. `compute` is what op() gives:
  /// f32, or bf16.
  Weight(std::vector<std::string> names, Shape each, Init init, std::uint64_t seed, DType compute,
         Device device, bool decay);

  Weight(const Weight&) = delete;  // parameters() are pointed to
  Weight& operator=(const Weight&) = delete;

  std::deque<Parameter>& parameters() { return parameters_; }
  /// The tensor to compute with, watched by the tape; the bf16 copy is made anew if a parameter has
  /// changed since. Not thread-safe.
  const Tensor& op(ops::Tape& tape) const;

 private:
  std::deque<Parameter> parameters_;
  Tensor value_, grad_;  // of all, one after the other
  DType compute_;
  mutable Tensor low_;  // bf16 copy
  mutable std::uint64_t low_version_ = 0;
};

}  // namespace vfm::nn
