// Halves and doubles videos in space and time, channels last: the CUDA versions of
// lib/ops/conv/resample.h.
//
// Each function is the backward pass of another, up to the factor. Computed in f32; x and y have
// `type`. Pointers need only the alignment of an element. If rows of channels are multiples of 16
// bytes, aligned to 16 bytes, they are read and written 16 bytes at a time, with the same results.
// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a
// negative size, 2^31 or more elements in a row of pixels (in a frame, for pool_frames), or too
// many rows.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// y [rows, columns, channels] = scale * sum of 2 x 2 pixels of x.
int pool_pixels(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                std::int64_t channels, float scale, CUstream_st* stream);
/// y [2 rows, 2 columns, channels] = scale * each pixel of x [rows, columns, channels].
int repeat_pixels(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                  std::int64_t channels, float scale, CUstream_st* stream);
/// y [frames, size] = scale * (frame 2 t of x + frame 2 t + 1 of x).
int pool_frames(Type type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                float scale, CUstream_st* stream);
/// y [2 frames, size]: frames 2 t and 2 t + 1 are scale * frame t of x.
int repeat_frames(Type type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                  float scale, CUstream_st* stream);

}  // namespace vfm::kernels
