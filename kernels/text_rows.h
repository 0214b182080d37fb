// What is done to the rows of a text between its matrix products, in place: the CUDA versions of
// lib/ops/position/turn_heads.h and lib/ops/pointwise/add_bias.h, to the bit.
//
// Both return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for negative
// sizes, or those that do not fit. f32; pointers need no more than the alignment of an element.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The first `heads` heads of each row of x [rows, width], of 2 `half` columns each: (a, b), the
/// halves of a head, become (a cos - b sin, b cos + a sin). cosines and sines [rows, half].
int turn_heads(float* x, std::int64_t rows, std::int64_t width, int heads, int half,
               const float* cosines, const float* sines, CUstream_st* stream);

/// y[row][i] += bias[i] for i below `width`; rows of y are `stride` apart.
int add_bias(float* y, std::int64_t rows, std::int64_t stride, const float* bias,
             std::int64_t width, CUstream_st* stream);

}  // namespace vfm::kernels
