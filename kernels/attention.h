// Scaled dot-product attention over a pack: the CUDA version of lib/ops/attention/attention.h,
// where the formula is. softmax(scale q k^T) v, each sample of the pack by itself, forward and
// back.
//
// bf16 with head dims of 64 and 128 runs on tensor cores (attention_forward.cu,
// attention_backward.cu); f32, other head dims up to 256 and rows that are not aligned run on plain
// arithmetic (attention_simple.cu), which is right but slow. Scores are never stored: forward goes
// through them in blocks with a running maximum and sum, backward recomputes them from the saved
// log-sum-exp.
//
// Deterministic without atomics: every gradient has one owner, who sums in a fixed order. Backward
// is therefore two kernels, over blocks of keys for dk and dv, over blocks of queries for dq, and
// makes scores and probabilities' gradients twice: seven products where a version that adds to dq
// with atomics has five. What a sample gets does not depend on its neighbours in the pack.
//
// Sources: Dao, "FlashAttention-2" (2023); Milakov and Gimelshein, "Online normalizer calculation
// for softmax" (2018).
// Shape letters: S queries of the pack, L keys of the pack, H heads, G key/value heads, K head dim.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Rows of one item of work.
inline constexpr int kAttentionQueryBlock = 128, kAttentionKeyBlock = 64;

/// A block of rows of one sample, for every head: queries first to first + kAttentionQueryBlock, or
/// keys first to first + kAttentionKeyBlock, cut at the sample's end.
struct AttentionItem {
  std::int32_t query_start = 0, queries = 0;  ///< the sample's rows of the pack
  std::int32_t key_start = 0, keys = 0;
  std::int32_t first = 0;  ///< counted from the sample's first row
  std::int32_t sample = 0;
};

/// Only blocks that have rows, so that a ragged pack starts no idle block; those with most to do
/// first, so that the last ones to finish are short.
struct AttentionWork {
  std::vector<AttentionItem> query_items;  ///< for forward and dq
  std::vector<AttentionItem> key_items;    ///< for dk and dv
};

/// Host code. As many query as key lengths, none below zero, each sum below 2^31.
AttentionWork attention_work(std::span<const std::int64_t> query_lengths,
                             std::span<const std::int64_t> key_lengths, bool causal);

/// Device pointers of one call. Rows of q, k and v have strides, counted in elements, so that they
/// may be columns of one matrix; heads lie beside each other in a row. Tensor cores want q, k, v,
/// out and the gradients aligned to 16 bytes and strides that are multiples of 8.
struct Attention {
  Type type = Type::f32;  ///< of q, k, v, out and their gradients
  bool causal = false;    ///< query i sees keys 0 to i + keys - queries of its sample
  int heads = 0;
  int key_heads = 0;  ///< divides heads: a key head serves heads / key_heads of them (GQA)
  int head_dim = 0;
  float scale = 0;  ///< above zero; 1 / sqrt(K) as a rule
  /// Forward only, or null: [H, 2 bias_reach - 1], added to the scores before `scale`, at
  /// bias_reach - 1 + query - key of a sample that is no longer than bias_reach. On plain
  /// arithmetic, whatever the type.
  const float* bias = nullptr;
  std::int64_t bias_reach = 0;
  std::int64_t queries = 0;                    ///< S
  const AttentionItem* query_items = nullptr;  ///< attention_work's
  std::int64_t query_item_count = 0;
  const AttentionItem* key_items = nullptr;  ///< backward only
  std::int64_t key_item_count = 0;
  const void* q = nullptr;     ///< [S, H K]
  std::int64_t q_stride = 0;   ///< of q and dq
  const void* k = nullptr;     ///< [L, G K]
  const void* v = nullptr;     ///< [L, G K]
  std::int64_t kv_stride = 0;  ///< of k, v, dk and dv
  void* out = nullptr;         ///< [S, H K]; in for backward
  bool wide = false;           ///< forward only: `out` is f32, whatever the type
  /// [H, S]; in for backward. Natural logarithm; zero for a query that sees no key, whose row of
  /// out is zero.
  float* log_sum_exp = nullptr;
  const void* dout = nullptr;  ///< backward only, [S, H K]
  void* dq = nullptr;          ///< backward only, out: [S, H K]
  void* dk = nullptr;          ///< backward only, out: [L, G K]
  void* dv = nullptr;          ///< backward only, out: [L, G K]
  float* row_sums = nullptr;   ///< backward only: scratch of [H, S, 2], aligned to 8 bytes
};

/// Return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a head dim
/// above 256, heads that key heads do not divide, or a scale that is not above zero.
///
/// NaN and infinity come through to the rows of their sample that see them, to no other sample.
/// Scores beyond 1e8 are out of the tensor cores' versions' range: they lose their differences
/// there and may end as infinity.
int attention_forward(const Attention& call, CUstream_st* stream);
int attention_backward(const Attention& call, CUstream_st* stream);

}  // namespace vfm::kernels
