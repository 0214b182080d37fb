// The CUDA versions of fsq.h and pixel_error.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "ops/pixel_error.h"

namespace vfm::ops {

inline constexpr std::size_t kMostFsqLevels = 16;

/// What fsq.h calls h, o, s and m of each of the numbers, and the bounds of its levels.
struct FsqLevels {
  std::size_t dimensions = 0;
  std::array<float, kMostFsqLevels> half{}, offset{}, shift{}, middle{}, lowest{}, highest{};
};

/// Values of z to `out`; with `gradient`, which is that of the values, the gradient of z.
void fsq_cuda(const Tensor& z, const FsqLevels& levels, const Tensor& gradient, const Tensor& out);

/// Fills out.sums, and out.seed unless scale is 0.
void pixel_error_cuda(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                      double scale, const PixelError& out);

}  // namespace vfm::ops
