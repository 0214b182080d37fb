// The kernels behind resample.h. Each is the backward pass of another, up to the factor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// y [rows, columns, channels] = scale * sum of 2 x 2 pixels of x. Here and below x and y have
// `type`.
VFM_ISA_KERNEL(void, pool_pixels, DType type, const void* x, void* y, std::int64_t rows,
               std::int64_t columns, std::int64_t channels, float scale)
// y [2 rows, 2 columns, channels] = scale * each pixel of x [rows, columns, channels]
VFM_ISA_KERNEL(void, repeat_pixels, DType type, const void* x, void* y, std::int64_t rows,
               std::int64_t columns, std::int64_t channels, float scale)
// y [frames, size] = scale * (frame 2 t of x + frame 2 t + 1 of x)
VFM_ISA_KERNEL(void, pool_frames, DType type, const void* x, void* y, std::int64_t frames,
               std::int64_t size, float scale)
// y [2 frames, size]: frames 2 t and 2 t + 1 are scale * frame t of x
VFM_ISA_KERNEL(void, repeat_frames, DType type, const void* x, void* y, std::int64_t frames,
               std::int64_t size, float scale)

}  // namespace vfm::ops
