// Attention with FP8 products, for inference: attention.h without a mask, with queries, keys,
// values and the weights of the softmax rounded to E4M3. On a GPU cuDNN computes it (Hopper and
// later).
//
// There are three scales, of all queries, of all keys and of all values of a pack: cuDNN takes one
// number for each. Finer scales would gain little, as for products (matmul/quantize.h). The result
// is E4M3 too, in the scale of the values, of which it is a mean, before it becomes bf16; a B200
// writes bf16 at once. attention_fp8_graph.h tells how weights are rounded. The CPU rounds alike,
// so it tells how much FP8 changes a model; sums have another order there. NaN or infinity in one
// of the three makes the whole result NaN. Of normally distributed heads with 512 to 16,384 keys
// the result is 6.0 % from that in f32 (5.3 % if written in bf16), and 0.2 % with bf16 throughout.
//
// Where cuDNN does not compute a pack in FP8 (why_no_fp8_attention(), or no engine), attention runs
// in bf16 over the rounded heads, and a message says so once.
//
// Ranks that share tokens or heads send the heads as codes, E4M3. The scales follow from the
// largest magnitudes of all parts, so each rank rounds as one rank would.
// Source: Shah et al., "FlashAttention-3" (2024), for what FP8 gains. NVIDIA measured 1,023 to
// 1,062 TFLOP/s on an H200, cuDNN 9.19, heads of 128, 8,192 to 32,768 tokens: 1.5 times bf16.
// Shape letters: S queries, L keys, H heads, G key/value heads, K head dim, P parts.
// Thread-safety: as ops/matmul/quantize.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/attention/attention.h"

namespace vfm::ops {

/// Returns why attention in FP8 does not support heads of this size on any device; it supports 64
/// and 128. Empty if it does.
std::string why_no_fp8_attention(int head_dim);
/// Returns why attention on `device` would not run in FP8: on a GPU cuDNN must run it
/// (attention_choice.h), of version 9.14 or later. Empty if it would, as on the CPU.
std::string why_no_fp8_attention(Device device);

/// Heads that stand side by side in a row, in this order. Any of the three may be 0.
struct HeadKinds {
  int queries = 0, keys = 0, values = 0;
  int head_dim = 0;  ///< a multiple of 16
  int heads() const { return queries + keys + values; }
};

// Codes of heads. Not recorded. Throw Error if tensors do not fit the kinds.

/// Returns the bits of the largest magnitude of each kind, [3] i32, for x bf16 [S, heads() K]. The
/// bits are ordered as the values are; 0 for a kind that x does not have.
Tensor largest_of_kinds(const Tensor& x, const HeadKinds& kinds);
/// Returns the largest of P parts, [3]. `largest` is [P, 3].
Tensor largest_of_parts(const Tensor& largest);
/// Returns codes E4M3 [S, heads() K]. `largest` [3] is over all parts. Throws Error on a GPU
/// without FP8.
Tensor quantize_heads(const Tensor& x, const HeadKinds& kinds, const Tensor& largest);
/// Returns bf16 [S, heads() K]: scale times code, rounded.
Tensor restore_heads(const Tensor& codes, const HeadKinds& kinds, const Tensor& largest);

/// Returns bf16 [S, H K] for codes [S, (H + 2 G) K], as self_attention() does. `largest` [3] as
/// above. `pack` is not causal. With `rounded` the result is as the device makes it, for a rank
/// that sends it: codes in the scale of the values, or bf16 on a B200. Throws Error for another
/// dtype, shape or head dim.
Tensor self_attention_codes(const Tensor& codes, const Tensor& largest, const AttentionPack& pack,
                            bool rounded = false);
/// The same for queries [S, H K] over keys and values [L, 2 G K], as cross_attention() does.
Tensor cross_attention_codes(const Tensor& q, const Tensor& kv, const Tensor& largest,
                             const AttentionPack& pack);

/// Returns self_attention_codes() of qkv, bf16, rounded with its own scales. Has no gradient:
/// throws Error for a tape that records.
Tensor self_attention_fp8(const Tape& tape, const Tensor& qkv, const AttentionPack& pack);

}  // namespace vfm::ops
