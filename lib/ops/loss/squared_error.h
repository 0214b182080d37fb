// The loss of diffusion training: squared differences over a pack, summed by sample.
// Shape letters: N elements of the pack, R samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// The next `count` elements of a pack. The first `given` of each channel, which has `channel`
/// elements, are given ones: their error counts as 0.
struct ErrorSample {
  std::int64_t count = 0, channel = 0, given = 0;

  /// Elements whose error counts.
  std::int64_t counted() const { return given == 0 ? count : count - count / channel * given; }
};

struct SquaredError {
  Tensor seed;  ///< 2 scale (output - target), of output's shape; undefined for scale 0
  Tensor sums;  ///< R doubles, as bytes, where output is: see read_sums

  /// The sum of (output - target)^2 over each sample. On a GPU it waits for what was queued, so do
  /// it late.
  std::vector<double> read_sums() const;
};

/// output and target [N] f32 on one device, the samples one after the other. Sums are taken in
/// double, in a fixed order.
SquaredError squared_error(const Tensor& output, const Tensor& target,
                           std::span<const ErrorSample> samples, double scale);

}  // namespace vfm::ops
