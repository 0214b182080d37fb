// Self-attention over tokens that a group of ranks shares: queries stay on their rank, keys and
// values are passed round the ranks.
//
// Every rank sends the keys and values that it has to the next rank while it attends over them, and
// adds up the results of the parts (ops/attention/partial_attention.h). In backward the keys and
// values are passed round again, followed by their gradients in f32. Each rank adds its share, and
// the last step returns the gradients to the rank of the keys and values. So no rank holds more
// than two parts. Backward attends over its own keys in two halves of the heads, the second at the
// end, so that computing hides the first transfer and the last. One key head is not halved.
// With even parts and c ranks, a rank sends 2 (c-1) S/c G K elements in forward. In backward it
// sends the same, and the same number again in f32.
// Source: Liu, Zaharia and Abbeel, "Ring attention with blockwise transformers for near-infinite
// context" (2023).
// On a GPU a part is attended over by cuDNN where it can be (ops/attention/attention_choice.h).
// Every rank of the group must run the same calls in the same order. Not causal.
// Shape letters: S tokens of all ranks, H heads, G key/value heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dist/group.h"
#include "nn/low_heads.h"
#include "ops/attention/attention.h"

namespace vfm::nn {

struct Ring {
  dist::Group* group = nullptr;  ///< must outlive it; null: no ring
  /// By rank: this rank's queries over the keys of that rank, with lengths by sample. A rank may
  /// have no token of a sample.
  std::vector<ops::AttentionPack> packs;
  explicit operator bool() const { return group != nullptr; }
};

/// qkv [rows of this rank, (H + 2 G) K], laid out as for ops::self_attention. Returns [rows, H K].
Tensor ring_attention(ops::Tape& tape, const Tensor& qkv, const Ring& ring);

/// The same of heads in FP8 with the scales of all ranks' tokens, for inference. Keys and values
/// travel as E4M3, one byte per element. Parts are attended over in bf16, restored: cuDNN writes
/// results in FP8 where it multiplies in FP8 (ops/attention/attention_fp8.h), and sums of such
/// parts would be less exact. Returns bf16 [rows, H K].
Tensor ring_attention_fp8(const LowHeads& qkv, const Ring& ring);

}  // namespace vfm::nn
