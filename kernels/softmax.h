// Softmax over rows of scores and its gradient: the CUDA versions of the steps between matrix
// products in lib/ops/attention/video_attention.h. One block computes a row, of any length.
//
// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a
// negative size or 2^31 or more rows or columns. Pointers need only the alignment of an element.
// Rows of a multiple of 16 bytes, aligned to 16 bytes, are read and written four elements at a
// time.
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// p = softmax(scale * s) of each row of `columns` elements. p has `type`; it may be s if that is
/// f32.
int softmax_rows(const float* s, Type type, void* p, std::int64_t rows, std::int64_t columns,
                 float scale, CUstream_st* stream);

/// ds = scale * p (dp - sum of p dp over the row). p and ds have `type`; ds may be p, or dp if
/// `type` is f32.
int softmax_rows_backward(Type type, const void* p, const float* dp, void* ds, std::int64_t rows,
                          std::int64_t columns, float scale, CUstream_st* stream);

}  // namespace vfm::kernels
