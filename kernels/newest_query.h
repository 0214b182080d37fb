// Attention of the newest token of each of several texts over all tokens of its text so far,
// softmax(scale q k^T) v: the CUDA version of lib/ops/attention/newest_query.h.
//
// A block computes one head of a text. Each of its eight warps takes every eighth group of keys,
// with a running maximum and sum; then the warps are combined in order. The bits of a text's result
// depend only on its own query, keys and values.
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
// Shape letters: H heads, G key/value heads, K head dim.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The most texts of one call: their addresses are launch arguments.
inline constexpr int kNewestTexts = 16;

/// Keys and values of a text side by side in rows, [seen, 2 G K]; a device pointer.
struct NewestText {
  const void* kv = nullptr;
  std::int64_t seen = 0;  ///< at least 1
};

/// Device pointers; `of` itself is on the host. Fast if kv is aligned to 16 bytes and K is a
/// multiple of 4.
struct NewestQuery {
  Type type = Type::f32;  ///< of keys and values
  int texts = 0, heads = 0, key_heads = 0, head_dim = 0;
  float scale = 0;
  const float* q = nullptr;  ///< [texts, H K]
  float* out = nullptr;      ///< [texts, H K]
  NewestText of[kNewestTexts];
};

/// Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for more texts
/// than kNewestTexts, a head dim above 256, heads that are not a multiple of key heads, or a text
/// without keys.
int newest_query(const NewestQuery& call, CUstream_st* stream);

}  // namespace vfm::kernels
