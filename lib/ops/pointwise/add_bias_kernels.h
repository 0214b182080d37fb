// The kernel behind add_bias.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// y[row][i] += bias[i] for i < width; rows of y are `stride` elements apart
VFM_KERNEL(void, add_bias, float* y, std::int64_t rows, std::int64_t stride, const float* bias,
           std::int64_t width)

}  // namespace vfm::ops
