// Queries, keys and values in FP8 (E4M3), with scales that ranks agree on. Attention in FP8 of
// ranks that share tokens or heads then rounds as one rank would that has all.
//
// The ranks exchange the largest magnitudes of their queries, keys and values, 12 bytes each
// (ops/attention/attention_fp8.h). Codes travel to other ranks in one byte an element, and keep
// their scales.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/group.h"
#include "ops/attention/attention_fp8.h"

namespace vfm::nn {

/// Codes E4M3 [S, heads K], and the largest magnitudes [3] i32 from which their scales follow.
struct LowHeads {
  Tensor codes, largest;
};

/// Rounds qkv, bf16 [S, (H + 2 G) K], of this rank. The pack's heads are these, or an even part of
/// them, which a rank has after an exchange of tokens for heads. `ranks` null: qkv is all there is.
/// A collective.
LowHeads round_heads(const Tensor& qkv, const ops::AttentionPack& pack, dist::Group* ranks);

}  // namespace vfm::nn
