// Attention of the newest token of each of some texts over what the text has so far: the CUDA
// version of lib/ops/attention/newest_query.h. softmax(scale q k^T) v.
//
// A block is a head of a text: each of its warps takes every eighth group of keys, with a running
// maximum and sum, and then the warps are put together in their order. So a text's bits depend on
// its own keys and values alone.
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
// Shape letters: H heads, G key/value heads, K head dim.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Texts of one call, at most: their addresses travel with the launch.
inline constexpr int kNewestTexts = 16;

/// Of a text: rows of keys and values beside each other, [seen, 2 G K]; a device pointer.
struct NewestText {
  const void* kv = nullptr;
  std::int64_t seen = 0;  ///< at least 1
};

/// Device pointers, but for `of`. Fast where kv is aligned to 16 bytes and K a multiple of 4.
struct NewestQuery {
  Type type = Type::f32;  ///< of keys and values
  int texts = 0, heads = 0, key_heads = 0, head_dim = 0;
  float scale = 0;
  const float* q = nullptr;  ///< [texts, H K]
  float* out = nullptr;      ///< [texts, H K]
  NewestText of[kNewestTexts];
};

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for more texts
/// than kNewestTexts, a head dim above 256, heads that key heads do not divide, or a text without
/// keys.
int newest_query(const NewestQuery& call, CUstream_st* stream);

}  // namespace vfm::kernels
