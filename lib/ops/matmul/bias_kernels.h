// The kernels behind bias.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// y[row][i] += bias[i] for i < width; rows of y are `stride` elements apart
VFM_KERNEL(void, add_bias, DType type, void* y, std::int64_t rows, std::int64_t stride,
           const float* bias, std::int64_t width)
// sum[i] += the sum over the rows of dy[row][i]
VFM_KERNEL(void, bias_gradient, DType type, const void* dy, std::int64_t rows, std::int64_t width,
           float* sum)

/// On a GPU rows are summed in at most so many parts, which take a float each for every column.
inline constexpr std::int64_t kBiasParts = 256;

}  // namespace vfm::ops
