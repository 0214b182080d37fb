// The kernels behind sum_squares.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/optim/sum_squares.h"

namespace vfm::ops {

VFM_KERNEL(double, sum_squares, std::span<const Extent> arrays)

// Sums one chunk on the calling thread.
VFM_CPU_KERNEL(double, sum_squares_chunk, const float* x, std::int64_t n)

}  // namespace vfm::ops
