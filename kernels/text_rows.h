// Steps on the rows of a text, a picture or a video between matrix products, in place: the CUDA
// versions of lib/ops/position/turn_heads.h and lib/ops/matmul/bias.h, with the same bits.
//
// All return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes that
// are negative or do not fit. What has no Type is f32. Pointers need only the alignment of an
// element, those of turn_neighbours that of two.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Rotates the first `heads` heads of each row of x [rows, width]. A head has 2 `half` columns: its
/// halves (a, b) become (a cos - b sin, b cos + a sin). cosines and sines are [rows, half].
int turn_heads(float* x, std::int64_t rows, std::int64_t width, int heads, int half,
               const float* cosines, const float* sines, CUstream_st* stream);

/// The same for heads whose elements (a, b) = (2 i, 2 i + 1) become (a cos_a - b sin_a, b cos_b +
/// a sin_b). cosines and sines are [rows, 2 half]; `width` is even.
int turn_neighbours(float* x, std::int64_t rows, std::int64_t width, int heads, int half,
                    const float* cosines, const float* sines, CUstream_st* stream);

/// y[row][i] += bias[i] for i < `width`, in f32; rows of y are `stride` elements apart. 16 bytes
/// are read and written at once if y and bias are aligned to that, and width and stride are
/// multiples of 8.
int add_bias(Type type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
             std::int64_t width, CUstream_st* stream);

}  // namespace vfm::kernels
