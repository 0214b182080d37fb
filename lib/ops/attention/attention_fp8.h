// Self-attention with FP8 products, for inference: attention.h with queries, keys, values and
// probabilities rounded to E4M3.
//
// Each head of each sample has its own scale, so a sample's result does not depend on the other
// samples in the pack. A probability is 2^(8 + x - m), rounded, with 2^x = e^score and m the
// largest x rounded to a whole number. Probabilities are divided by the sum of the rounded ones.
// With a different m, all probabilities change by the same power of two, so they are rounded alike.
// The CPU, the GPU (which knows only the largest score so far) and parts of the keys therefore
// differ only in the order of f32 sums. NaN or infinity in a head of a sample makes that head's
// output NaN for the whole sample.
//
// Ranks that share tokens send the heads of queries, keys and values as codes, E4M3, with a scale
// for each head of each sample. The scale is that of attention: it follows from all rows of the
// sample, on all ranks, so the largest magnitudes of the parts are combined first. Attention then
// rounds the received values to the codes that were sent, and gives the same bits as on one rank.
// Codes are the same on CPU and GPU.
// Source: Shah et al., "FlashAttention-3" (2024). kernels/attention_fp8.h has the details.
// Shape letters: S rows, H heads, K head dim, R samples, P parts.
// Thread-safety: as ops/matmul/quantize.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/attention/partial_attention.h"

namespace vfm::ops {

/// Returns why attention in FP8 does not support heads of this size on any device; it supports 64
/// and 128. Empty if it does.
std::string why_no_fp8_attention(int head_dim);

/// Whether attention in FP8 is faster on `device` and so worth its rounding. False on a GPU where
/// cuDNN's attention runs (attention_choice.h), which is faster in bf16. True on the CPU.
bool fp8_attention_pays(Device device);

/// Returns bf16 [S, H K] for bf16 qkv [S, (H + 2 G) K], as self_attention() does. Has no gradient.
/// Throws Error for a tape that records, for another dtype, shape or head dim, and on a GPU without
/// FP8.
Tensor self_attention_fp8(const Tape& tape, const Tensor& qkv, const AttentionPack& pack);

/// Attention of some queries of a sample over some of its keys, as attend_part() computes it: q
/// bf16 [S, H K], kv bf16 [L, 2 G K]. Scales follow from `largest`, i32 [R, H + 2 G], R samples:
/// largest_of_heads() of all queries, keys and values of a sample, on all ranks. The result has
/// dtype `out`, bf16 or f32. In bf16 over all keys it equals self_attention_fp8() of these queries,
/// bit for bit. In f32 over parts of the keys, AttentionSum adds up the parts to that result,
/// except for roundings in f32. Throws Error for unsupported arguments, and on a GPU without FP8.
PartOfAttention attend_part_fp8(const Tensor& q, const Tensor& kv, const AttentionPack& pack,
                                const Tensor& largest, DType out);

// Codes of heads. Not recorded. Throw Error if tensors do not fit the layout.

/// Number of rows of each sample, in order, possibly 0; and K, a multiple of 16.
struct HeadLayout {
  std::vector<std::int64_t> lengths;
  int head_dim = 0;
};

/// Returns the bits of the largest |x| of each head, i32 [R, H], for x bf16 [S, H K]. The bits are
/// ordered as the values are; 0 for a sample without rows.
Tensor largest_of_heads(const Tensor& x, const HeadLayout& layout);
/// Returns the largest of P parts, [R, H]. `largest` is [P R, H], one part below the other.
Tensor largest_of_parts(const Tensor& largest, std::int64_t samples);
/// Returns codes E4M3 [S, H K]. `largest` [R, H] is over all parts. Throws Error on a GPU without
/// FP8.
Tensor quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest);
/// Returns bf16 [S, H K]: scale times code, rounded.
Tensor restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest);

}  // namespace vfm::ops
