// The CPU kernels behind resample.h. Each is the way back of another, but for the factor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cpu/isa.h"

namespace vfm::ops {

VFM_EACH_ISA(
    // y [rows, columns, channels] = scale * the sums of 2 x 2 pixels of x
    void pool_pixels(const float* x, float* y, std::int64_t rows, std::int64_t columns,
                     std::int64_t channels, float scale);
    void pool_pixels(const std::uint16_t* x, std::uint16_t* y, std::int64_t rows,
                     std::int64_t columns, std::int64_t channels, float scale);
    // y [2 rows, 2 columns, channels] = scale * each pixel of x [rows, columns, channels]
    void repeat_pixels(const float* x, float* y, std::int64_t rows, std::int64_t columns,
                       std::int64_t channels, float scale);
    void repeat_pixels(const std::uint16_t* x, std::uint16_t* y, std::int64_t rows,
                       std::int64_t columns, std::int64_t channels, float scale);
    // y [frames, size] = scale * (frame 2 t + frame 2 t + 1 of x)
    void pool_frames(const float* x, float* y, std::int64_t frames, std::int64_t size, float scale);
    void pool_frames(const std::uint16_t* x, std::uint16_t* y, std::int64_t frames,
                     std::int64_t size, float scale);
    // y [2 frames, size]: scale * frame t of x, twice
    void repeat_frames(const float* x, float* y, std::int64_t frames, std::int64_t size,
                       float scale);
    void repeat_frames(const std::uint16_t* x, std::uint16_t* y, std::int64_t frames,
                       std::int64_t size, float scale);)

}  // namespace vfm::ops
