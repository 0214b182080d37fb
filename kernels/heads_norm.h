// RMSNorm of a part of a row over all heads of a token, whose heads may be on several ranks: the
// CUDA version of lib/ops/norm/heads_norm.h.
//
//   forward   sums = sum(x^2), added to those of other ranks by the caller
//             r = 1 / sqrt(sums / all + epsilon), n = x r, y = n weight
//   backward  products = sum(dy weight n), added to those of other ranks by the caller
//             dx = r (dy weight - n products / all), dweight = sum over the tokens of dy n
//
// Sums have an order that depends only on the sizes and the alignment; dweight is summed over
// chunks of tokens first. An x whose squares overflow f32 gives r = 0. NaN and infinity in x make
// their row NaN.
//
// N tokens; D columns of this rank, any number, and `all` of all ranks. Rows of x, y, dy and dx are
// `stride` elements apart, so pointers may point into a row. Fast if pointers are aligned to 16
// bytes, and D and `stride` elements are multiples of 16 bytes; other cases give correct results.
// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
// sizes below zero, more than 2^31 - 1 tokens or columns, or D above `stride` or `all`. Sizes of
// zero succeed.
// Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The arguments of all functions.
struct HeadsNorm {
  std::int64_t tokens = 0, width = 0, stride = 0, all = 0;
  int step = 1;           ///< elements from a token's number in `sums` and `products` to the next
  Type type = Type::f32;  ///< of x, y, dy and dx
  float epsilon = 1e-6f;
  const void* x = nullptr;        ///< [N, D]
  const float* weight = nullptr;  ///< [D]
};

struct HeadsNormForward : HeadsNorm {
  float* sums = nullptr;  ///< [N] output; input if `summed`
  bool summed = false;
  void* y = nullptr;  ///< [N, D] output, may be x; null for the sums alone
};
int heads_norm_forward(const HeadsNormForward& call, CUstream_st* stream);

/// Number of tokens whose weight gradients are summed together.
inline constexpr std::int64_t kHeadsNormChunk = 32;

struct HeadsNormBackward : HeadsNorm {
  const float* sums = nullptr;  ///< [N], of all ranks
  const void* dy = nullptr;     ///< [N, D]
  float* products = nullptr;    ///< [N]: output of heads_norm_products, input of the other function
  void* dx = nullptr;           ///< [N, D] output; may be dy
  float* dweight = nullptr;     ///< [D] output, zeros without tokens; null if not wanted
  float* partial = nullptr;     ///< [ceil(N / kHeadsNormChunk), D] scratch; unused without dweight
};
int heads_norm_products(const HeadsNormBackward& call, CUstream_st* stream);
int heads_norm_gradients(const HeadsNormBackward& call, CUstream_st* stream);

}  // namespace vfm::kernels
