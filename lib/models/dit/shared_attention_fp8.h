// Self-attention in FP8 of tokens that ranks share, by any CpKind (nn/cp_kind.h): in place
// of shared_attention() (nn/network_layout.h).
//
// What of queries, keys and values travels does so as E4M3, a byte an element, with the scales of
// all of the sample's tokens. So all_to_all and gather give the bits of ops::self_attention_fp8()
// on one rank; a ring rounds the weights of each part beside the largest score of that part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/token_shard.h"

namespace vfm::models {

/// qkv bf16 [S, (H + 2 G) K], normed and rotated, of this rank's tokens and heads; `pack` is that
/// of a NetworkPack: the whole samples'. For inference. A collective of cp.
Tensor shared_attention_fp8(ops::Tape& tape, const Tensor& qkv, const nn::TokenExchanges& exchanges,
                            const ops::AttentionPack& pack);

}  // namespace vfm::models
