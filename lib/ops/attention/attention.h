// Scaled dot-product attention over a pack: softmax(q k^T / sqrt(K)) v, each sample by itself.
//
// The score matrix is never stored: forward goes through it in blocks, keeping a running maximum
// and sum, and backward recomputes the blocks from the saved log-sum-exp.
// Sources: Dao, "FlashAttention-2" (2023); Milakov and Gimelshein, "Online normalizer calculation
// for softmax" (2018).
// Shape letters: S queries of the pack, L keys of the pack, H heads, G key/value heads, K head
// dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/position/qk_norm_rope.h"
#include "ops/tape.h"

namespace vfm::ops {

struct AttentionDeviceWork;  // attention_cuda.cc

/// Which queries see which keys. Sample i has query_lengths[i] queries, key_lengths[i] keys.
struct AttentionPack {
  std::vector<std::int64_t> query_lengths, key_lengths;
  int heads = 0;
  int key_heads = 0;  ///< divides heads: a key head serves heads / key_heads of them (GQA)
  int head_dim = 0;
  bool causal = false;  ///< query i sees keys 0 to i + key_length - query_length
  /// Lists on the GPU of what there is to do, from prepare(); on the CPU none.
  std::shared_ptr<const AttentionDeviceWork> work = nullptr;
};

/// Makes what attention on `device` needs beside the lengths. Call it once for a pack that many
/// layers use, and again when a length changes; without it each call does it.
void prepare(AttentionPack& pack, Device device);

/// qkv [S, (H + 2 G) K]: queries, keys, values of a token beside each other; f32 or bf16. Returns
/// [S, H K] of the same dtype. key_lengths must equal query_lengths. Deterministic, forward and
/// back, but for cuDNN's body on a GPU (attention_choice.h).
Tensor self_attention(Tape& tape, const Tensor& qkv, const AttentionPack& pack);

/// self_attention of qk_norm_rope(x, layout), which has the pack's heads. The values are not
/// copied, but read where they lie in x.
Tensor normed_self_attention(Tape& tape, const Tensor& x, const QkNormRope& layout,
                             const AttentionPack& pack);

/// Attention of the queries in qkv [S, (H + 2 G) K] over kv [L, 2 G K], as cross_attention has it:
/// where the keys and values beside the queries are only this rank's part of those that they see.
Tensor attention_over(Tape& tape, const Tensor& qkv, const Tensor& kv, const AttentionPack& pack);

/// q [S, H K], kv [L, 2 G K]: keys and values of a token beside each other. A sample without keys
/// gets zero.
Tensor cross_attention(Tape& tape, const Tensor& q, const Tensor& kv, const AttentionPack& pack);

/// Attention with a bias for the distance of query and key, and no scale, as T5 has it:
/// softmax(q k^T + bias) v. q, k and v [S, H K], of one dtype, f32 or bf16; bias [H, 2 R - 1], f32,
/// of which element R - 1 + query - key is added, both counted from the sample's first; no sample
/// is longer than R. Key heads are the heads; not causal. Forward only: throws Error if the tape
/// records.
Tensor relative_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& bias, const AttentionPack& pack);

}  // namespace vfm::ops
