// The graph of forward attention in FP8 (E4M3) for cuDNN, and how cuDNN rounds in it.
//
//   scores   = scale descale_q descale_k q k^T
//   S        = softmax(scores), rounded to E4M3 after scale_s
//   out      = scale_o descale_s descale_v S v, rounded to E4M3, or to bf16
//
// Samples have equal lengths and lie one behind the other, q, k and v as columns of wider matrices.
// cuDNN takes one number for each scale, in memory; finer scales do not compile (9.19). The result
// is E4M3 on Hopper, and may be bf16 on a B200.
//
// Its kernels do not divide the weights of S before they are rounded: a weight is e^(score - m),
// with m the largest score so far, a block of keys at a time, so at most 1. scale_s moves it into
// the range of E4M3. The sum by which the result is divided is that of the weights before they are
// rounded.
//
// Plans for a described H200 and B200 (cuDNN 9.19) take any length from 2 queries on, heads of
// multiples of 16 up to 256 (B200: 128), shared key heads, causal masks and ragged memory. The
// statistics and the largest |out| must be in the graph, even if nobody reads them.
// Sources: the operations of NVIDIA, "cudnn-frontend" 1.x, scaled_dot_product_flash_attention.h and
// matmul_fp8.h; for the rounding the reference of its tests, test/python/sdpa/fp8_ref.py.
// Shape letters: B samples, S queries and L keys of each, H heads, G key heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>

#include "ops/cudnn/tensor_graph.h"

namespace vfm::ops {

/// Calls of equal shapes share a plan. Strides are from row to row, in elements.
struct Fp8AttentionShape {
  std::int64_t samples = 0, queries = 0, keys = 0;
  int heads = 0, key_heads = 0, head_dim = 0;
  std::int64_t q_stride = 0, kv_stride = 0;
  bool wide = false;  ///< the result is bf16
  auto operator<=>(const Fp8AttentionShape&) const = default;
};

/// "2 samples of 8192 queries and 8192 keys, 32 heads of 128".
std::string text_of(const Fp8AttentionShape& shape);

/// The keys of a block, as in Hopper's kernel of cuDNN 9.19; and scale_s: a weight of one is 2^8.
inline constexpr std::int64_t kFp8KeyBlock = 256;
inline constexpr float kFp8WeightScale = 256;

/// Ids of the graph's tensors in memory: codes of queries, keys and values; the result [B S, H K];
/// and one f32 each.
enum Fp8AttentionId : std::int64_t {
  kCodesQ = 1,
  kCodesK,
  kCodesV,
  kFp8Out,
  kDescaleQ,
  kDescaleK,
  kDescaleV,
  kScaleOut,       ///< not with `wide`
  kLargestWeight,  ///< output that cuDNN needs to have: the largest S
  kLargestOut,     ///< output that cuDNN needs to have: the largest |out| before scale_o
};

graph::Graph attention_fp8_graph(const Fp8AttentionShape& shape);

}  // namespace vfm::ops
