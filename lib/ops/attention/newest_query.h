// Attention of the newest token of each of several texts over all tokens of its text so far, for
// generating text token by token. ops/attention/attention.h is for blocks of queries.
//
// Each text has its keys and values in its own tensor. The bits of its result depend on these
// alone, not on the other texts or their number.
// For inference, without a backward pass.
// Shape letters: N texts, H heads, G key/value heads, K head dim.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::ops {

/// On a GPU: the most texts of a call, and the largest head dim.
inline constexpr std::size_t kNewestTexts = 16;
inline constexpr int kNewestHead = 256;

/// Keys and values of a text: the first `seen` rows of `kv` [capacity, 2 G K], f32 or bf16.
struct SeenKeys {
  Tensor kv;
  std::int64_t seen = 0;
};

/// Returns softmax(q k^T / sqrt(K)) v, [N, H K] f32, for q [N, H K] f32 with one row per text. G
/// divides H, and all texts have the same type. Throws Error for shapes that do not fit, for a text
/// without keys, and for more than kNewestTexts texts on a GPU.
Tensor newest_query(const Tensor& q, std::span<const SeenKeys> texts, int heads, int key_heads);

}  // namespace vfm::ops
