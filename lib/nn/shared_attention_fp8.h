// Self-attention in FP8 over tokens that ranks share, for every CpKind (nn/cp_kind.h). It takes the
// place of shared_attention() (nn/token_shard.h).
//
// Ranks send queries, keys and values as E4M3, one byte per element, with the scales of all of the
// sample's tokens. So all_to_all and gather give the same bits as ops::self_attention_fp8() on one
// rank. A ring rounds the attention weights of each part relative to the largest score of that
// part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/token_shard.h"

namespace vfm::nn {

/// `qkv` is bf16 [S, (H + 2 G) K], normed and rotated, for this rank's tokens and heads. `pack`
/// describes whole samples, as SelfTokens::pack does. For inference. A collective of cp.
Tensor shared_attention_fp8(ops::Tape& tape, const Tensor& qkv, const TokenExchanges& exchanges,
                            const ops::AttentionPack& pack);

}  // namespace vfm::nn
