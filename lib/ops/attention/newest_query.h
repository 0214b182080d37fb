// Attention of the newest token of each of some texts over what the text has so far: what writing
// texts token by token needs, where ops/attention/attention.h works on blocks of queries.
//
// Each text has keys and values in a tensor of its own, and its result depends on these alone: what
// other texts there are, and how many, changes no bit of it.
// Inference; no backward.
// Shape letters: N texts, H heads, G key/value heads, K head dim.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::ops {

/// Texts of one call, and numbers of a head, at most, on a GPU.
inline constexpr std::size_t kNewestTexts = 16;
inline constexpr int kNewestHead = 256;

/// Keys and values of a text: of `kv` [capacity, 2 G K], f32 or bf16, the first `seen` rows.
struct SeenKeys {
  Tensor kv;
  std::int64_t seen = 0;
};

/// softmax(q k^T / sqrt(K)) v: q [N, H K] f32, one row a text; [N, H K] f32. G divides H, and all
/// texts have one type. Throws Error for shapes that do not fit, for a text without keys, and for
/// more texts than a GPU takes.
Tensor newest_query(const Tensor& q, std::span<const SeenKeys> texts, int heads, int key_heads);

}  // namespace vfm::ops
