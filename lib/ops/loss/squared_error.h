// The loss of diffusion training: squared differences over a pack, summed by sample.
// Shape letters: N elements of the pack, R samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// The next `count` elements of a pack, in channels of `channel` elements. The first `given`
/// elements of each channel are given, so their error counts as 0.
struct ErrorSample {
  std::int64_t count = 0, channel = 0, given = 0;

  /// Number of elements whose error counts.
  std::int64_t counted() const { return given == 0 ? count : count - count / channel * given; }
};

struct SquaredError {
  Tensor seed;  ///< 2 scale (output - target), in output's shape; undefined if scale is 0
  Tensor sums;  ///< R doubles, as bytes, on output's device; see read_sums()

  /// Returns the sum of (output - target)^2 over each sample. On a GPU this waits for all queued
  /// work, so call it late.
  std::vector<double> read_sums() const;
};

/// output and target are [N] f32 on one device, the samples one after the other. Sums are in
/// double, in a fixed order.
SquaredError squared_error(const Tensor& output, const Tensor& target,
                           std::span<const ErrorSample> samples, double scale);

}  // namespace vfm::ops
