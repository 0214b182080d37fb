// Self-attention in FP8 over tokens that ranks share, for every CpKind (nn/cp_kind.h). It takes the
// place of shared_attention() (nn/token_shard.h).
//
// Ranks send queries, keys and values as E4M3, one byte per element, with scales that all agreed
// on, and the results of their heads as these were made. So all_to_all and gather give the same
// bits as ops::self_attention_fp8() on one rank. A ring multiplies in bf16 what it received
// (nn/ring_attention.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/token_shard.h"

namespace vfm::nn {

/// `qkv` is bf16 [S, (H + 2 G) K], normed and rotated, for this rank's tokens and heads. `pack`
/// describes whole samples, as SelfTokens::pack does. `ranks` agree on the scales; null: this rank
/// alone. For inference. A collective of cp and of `ranks`.
Tensor shared_attention_fp8(ops::Tape& tape, const Tensor& qkv, const TokenExchanges& exchanges,
                            const ops::AttentionPack& pack, dist::Group* ranks);

}  // namespace vfm::nn
