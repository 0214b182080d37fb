// Self-attention with FP8 products, for inference: attention.h's, with queries, keys, values and
// probabilities rounded to E4M3.
//
// A scale for each head of each sample, so that what a sample gets does not depend on its
// neighbours in the pack. A probability is 2^8 exp(score - largest score), rounded; they are
// divided by the sum of the rounded ones. NaN or infinity in a head of a sample makes that head's
// output for all of the sample NaN. On the GPU the largest score is that of the keys seen so far,
// so that other probabilities fall on other sides of a rounding than on the CPU: results agree to
// that rounding. Source: Shah et al., "FlashAttention-3" (2024). kernels/attention_fp8.h has the
// details.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/attention/attention.h"

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

}  // namespace vfm::ops
