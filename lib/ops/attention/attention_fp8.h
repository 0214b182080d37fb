// Self-attention with FP8 products, for inference: attention.h's, with queries, keys, values and
// probabilities rounded to E4M3.
//
// A scale for each head of each sample, so that what a sample gets does not depend on its
// neighbours in the pack. A probability is 2^(8 + x - m), rounded, with the score as a power of two
// x and m the whole number nearest to the largest; they are divided by the sum of the rounded ones.
// Beside another largest score it is another power of two of itself, and so rounded alike: the CPU,
// the GPU, which knows the largest of the keys seen so far alone, and parts of the keys differ by
// the order of f32 sums. NaN or infinity in a head of a sample makes that head's output for all of
// the sample NaN. Source: Shah et al., "FlashAttention-3" (2024). kernels/attention_fp8.h has the
// details.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/attention/partial_attention.h"

namespace vfm::ops {

/// Empty if attention in FP8 takes heads of this size, on any device, else why it does not: it
/// takes 64 and 128.
std::string why_no_fp8_attention(int head_dim);

/// Whether attention in FP8 is worth its rounding on `device`: not on a GPU where cuDNN's attention
/// runs (attention_choice.h), which is faster in bf16. The CPU always computes what is asked for.
bool fp8_attention_pays(Device device);

/// qkv bf16 [S, (H + 2 G) K] as self_attention() takes it; bf16 [S, H K]. There is no gradient:
/// throws Error for a tape that records, for another dtype, shape or head dim, and on a GPU without
/// FP8.
Tensor self_attention_fp8(const Tape& tape, const Tensor& qkv, const AttentionPack& pack);

/// Of queries, keys and values that are parts of a sample's, whoever has the others: q bf16
/// [S, H K], kv bf16 [L, 2 G K], as attend_part() has them, with scales that follow from `largest`,
/// i32 [R, H + 2 G]: the largest magnitudes of the sample's queries, keys and values, wherever they
/// are (head_codes.h). The result is of dtype `out`, bf16 or f32. In bf16 over all keys it is
/// self_attention_fp8() of these queries, to the bit; in f32 over some of them it is what
/// AttentionSum adds up to that, but for f32's roundings. Throws Error for what does not fit, and
/// on a GPU without FP8.
PartOfAttention attend_part_fp8(const Tensor& q, const Tensor& kv, const AttentionPack& pack,
                                const Tensor& largest, DType out);

}  // namespace vfm::ops
