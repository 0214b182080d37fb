// Halving and doubling in space and time, channels last: the CUDA versions of
// lib/ops/conv/resample.h.
//
// Each is the backward of another, but for the factor. Computed in f32; x and y are of `type`.
// Pointers need no more than the alignment of an element; where rows of channels are whole 16 bytes
// and aligned so, they are read and written 16 bytes at a time, with the same results.
// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a negative
// size, 2^31 or more elements a row of pixels (a frame, where frames are halved), or too many rows.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// y [rows, columns, channels] = scale * the sums of 2 x 2 pixels of x.
int pool_pixels(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                std::int64_t channels, float scale, CUstream_st* stream);
/// y [2 rows, 2 columns, channels] = scale * each pixel of x [rows, columns, channels].
int repeat_pixels(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                  std::int64_t channels, float scale, CUstream_st* stream);
/// y [frames, size] = scale * (frame 2 t + frame 2 t + 1 of x).
int pool_frames(Type type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                float scale, CUstream_st* stream);
/// y [2 frames, size]: scale * frame t of x, twice.
int repeat_frames(Type type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                  float scale, CUstream_st* stream);

}  // namespace vfm::kernels
