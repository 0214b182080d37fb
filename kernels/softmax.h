// Softmax over rows of scores and its gradient: the CUDA versions of what
// lib/ops/attention/frame_attention.h has between its matrix products. A block has a row, of any
// length.
//
// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a negative
// size or 2^31 or more rows or columns. Pointers need no more than the alignment of an element;
// rows of whole 16 bytes, aligned so, are read and written four elements at a time. Source: Milakov
// and Gimelshein, "Online normalizer calculation for softmax" (2018).
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// p = softmax(scale * s) of each row of `columns`; p is of `type`, and may be s if that is f32.
int softmax_rows(const float* s, Type type, void* p, std::int64_t rows, std::int64_t columns,
                 float scale, CUstream_st* stream);

/// ds = scale * p (dp - the row's sum of p dp); p and ds are of `type`; ds may be p, or dp if that
/// is f32.
int softmax_rows_backward(Type type, const void* p, const float* dp, void* ds, std::int64_t rows,
                          std::int64_t columns, float scale, CUstream_st* stream);

}  // namespace vfm::kernels
