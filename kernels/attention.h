// Scaled dot-product attention over a pack, forward and backward: softmax(scale q k^T) v for each
// sample. The CUDA version of lib/ops/attention/attention.h, which has the formula.
//
// bf16 with head dims of 64 and 128 runs on tensor cores (attention_forward.cu,
// attention_backward.cu). f32, other head dims up to 256 and unaligned rows run on plain arithmetic
// (attention_simple.cu), which is slow. Scores are never stored: forward computes them in blocks
// with a running maximum and sum, backward recomputes them from the saved log-sum-exp.
//
// Deterministic without atomics: one thread block sums each gradient, in a fixed order. Backward is
// therefore two kernels, over blocks of keys for dk and dv and over blocks of queries for dq. Both
// compute scores and gradients of probabilities: seven products, where a version that adds to dq
// with atomics has five. The result of a sample does not depend on the other samples of the pack.
//
// Sources: Dao, "FlashAttention-2" (2023); Milakov and Gimelshein, "Online normalizer calculation
// for softmax" (2018).
// Shape letters: S queries of the pack, L keys of the pack, H heads, G key/value heads, K head dim.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Rows of one work item.
inline constexpr int kAttentionQueryBlock = 128, kAttentionKeyBlock = 64;

/// A block of rows of one sample, for every head: queries first to
/// first + kAttentionQueryBlock - 1, or keys first to first + kAttentionKeyBlock - 1, cut at the
/// end of the sample.
struct AttentionItem {
  std::int32_t query_start = 0, queries = 0;  ///< the sample's rows in the pack
  std::int32_t key_start = 0, keys = 0;
  std::int32_t first = 0;  ///< counted from the sample's first row
  std::int32_t sample = 0;
};

/// Only blocks that have rows, so that a ragged pack starts no idle block. The blocks with the most
/// work come first, so that the last ones to finish are short.
struct AttentionWork {
  std::vector<AttentionItem> query_items;  ///< for forward and dq
  std::vector<AttentionItem> key_items;    ///< for dk and dv
};

/// Host code. Both lists have the same number of lengths, none below zero, each with a sum below
/// 2^31.
AttentionWork attention_work(std::span<const std::int64_t> query_lengths,
                             std::span<const std::int64_t> key_lengths, bool causal);

/// Device pointers of one call. Rows of q, k and v have strides, counted in elements, so that they
/// may be columns of one matrix; heads lie side by side in a row. Tensor cores need q, k, v, out
/// and the gradients aligned to 16 bytes and strides that are multiples of 8.
struct Attention {
  Type type = Type::f32;  ///< of q, k, v, out and their gradients
  bool causal = false;    ///< query i sees keys 0 to i + keys - queries of its sample
  int heads = 0;
  int key_heads = 0;  ///< divides heads: heads / key_heads heads share a key head (GQA)
  int head_dim = 0;
  float scale = 0;  ///< above zero; usually 1 / sqrt(K)
  /// Forward only: [H, 2 bias_reach - 1]; null for no bias. Element bias_reach - 1 + query - key is
  /// added to the scores before `scale`; no sample may be longer than bias_reach. Runs on plain
  /// arithmetic, whatever the type.
  const float* bias = nullptr;
  std::int64_t bias_reach = 0;
  std::int64_t queries = 0;                    ///< S
  const AttentionItem* query_items = nullptr;  ///< of attention_work()
  std::int64_t query_item_count = 0;
  const AttentionItem* key_items = nullptr;  ///< backward only
  std::int64_t key_item_count = 0;
  const void* q = nullptr;     ///< [S, H K]
  std::int64_t q_stride = 0;   ///< of q and dq
  const void* k = nullptr;     ///< [L, G K]
  const void* v = nullptr;     ///< [L, G K]
  std::int64_t kv_stride = 0;  ///< of k, v, dk and dv
  void* out = nullptr;         ///< [S, H K]; an input of backward
  bool wide = false;           ///< forward only: `out` is f32, whatever `type` is
  /// [H, S], natural logarithm; an input of backward. For a query that sees no key it is zero, and
  /// so is the query's row of `out`.
  float* log_sum_exp = nullptr;
  const void* dout = nullptr;  ///< backward only, [S, H K]
  void* dq = nullptr;          ///< backward only, output: [S, H K]
  void* dk = nullptr;          ///< backward only, output: [L, G K]
  void* dv = nullptr;          ///< backward only, output: [L, G K]
  float* row_sums = nullptr;   ///< backward only: scratch of [H, S, 2], aligned to 8 bytes
};

/// Return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a head dim
/// above 256, heads that are not a multiple of key heads, or a scale that is not above zero.
///
/// NaN and infinity affect only those rows of their sample that see them. On tensor cores, scores
/// beyond 1e8 lose their differences and may become infinite.
int attention_forward(const Attention& call, CUstream_st* stream);
int attention_backward(const Attention& call, CUstream_st* stream);

}  // namespace vfm::kernels
