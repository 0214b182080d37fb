// Self-attention of tokens that a group of ranks shares: queries stay where they are, keys and
// values go round.
//
// Every rank sends the keys and values that it has to the next one while it attends over them, and
// adds up what the parts give (ops/attention/partial_attention.h). In backward they go round once
// more, and behind them their gradients, in f32: each rank adds its share, and after the last one
// they are where the keys and values came from. So no rank ever holds more than two parts. Of two
// ranks, each attends over its own keys in two halves of the heads, so that all ways are hidden.
// Per rank and attention with even parts forward sends 2 (c-1) S/c G K elements, c ranks; backward
// the same and, once more, the same in f32.
// Source: Liu, Zaharia and Abbeel, "Ring attention with blockwise transformers for near-infinite
// context" (2023).
// Every rank of the group must run the same ones in the same order. Not causal.
// Shape letters: S tokens of all ranks, H heads, G key/value heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dist/group.h"
#include "nn/head_exchange.h"
#include "ops/attention/attention.h"

namespace vfm::nn {

struct Ring {
  dist::Group* group = nullptr;  ///< must outlive it
  /// This rank's queries over the keys of each rank of the group: lengths by sample. A rank may
  /// have no token of a sample.
  std::vector<ops::AttentionPack> packs;
  explicit operator bool() const { return group != nullptr; }
};

/// qkv [rows of this rank, (H + 2 G) K] as ops::self_attention has it. Returns [rows, H K].
Tensor ring_attention(ops::Tape& tape, const Tensor& qkv, const Ring& ring);

/// Attention in FP8 (ops/attention/attention_fp8.h), for inference, of heads that were rounded with
/// the scales of all ranks' tokens: keys and values go round as E4M3, a byte an element, and each
/// part's weights are rounded beside its own largest score. Returns bf16 [rows, H K].
Tensor ring_attention_fp8(const LowHeads& qkv, const Ring& ring);

}  // namespace vfm::nn
