// Scaled dot-product attention over a pack of samples: softmax(q k^T / sqrt(K)) v for each sample.
//
// The score matrix is never stored. The forward pass computes it in blocks and keeps a running
// maximum and sum; the backward pass recomputes the blocks from the saved log-sum-exp.
// Sources: Dao, "FlashAttention-2" (2023); Milakov and Gimelshein, "Online normalizer calculation
// for softmax" (2018).
// Shape letters: S queries of the pack, L keys of the pack, H heads, G key/value heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/position/qk_norm_rope.h"
#include "ops/tape.h"

namespace vfm::ops {

struct AttentionDeviceWork;  // attention_cuda.cc

/// The samples of a pack and their heads. Sample i has query_lengths[i] queries and key_lengths[i]
/// keys.
struct AttentionPack {
  std::vector<std::int64_t> query_lengths, key_lengths;
  int heads = 0;
  int key_heads = 0;  ///< divides heads: heads / key_heads heads share a key head (GQA)
  int head_dim = 0;
  bool causal = false;  ///< query i sees keys 0 to i + key_length - query_length
  /// Lists of work items on the GPU, from prepare(); null on the CPU.
  std::shared_ptr<const AttentionDeviceWork> work = nullptr;
};

/// Prepares lists that attention on `device` needs. Call it once for a pack that many layers use,
/// and again when a length changes. Without it each call makes the lists.
void prepare(AttentionPack& pack, Device device);

/// Returns [S, H K] for qkv [S, (H + 2 G) K]; a row holds the queries, keys and values of a token.
/// f32 or bf16; the result has the same dtype. key_lengths must equal query_lengths. Forward and
/// backward are deterministic unless cuDNN runs on a GPU (attention_choice.h).
Tensor self_attention(Tape& tape, const Tensor& qkv, const AttentionPack& pack);

/// self_attention of qk_norm_rope(x, layout); `layout` has the pack's heads. The values are read
/// from x without a copy.
Tensor normed_self_attention(Tape& tape, const Tensor& x, const QkNormRope& layout,
                             const AttentionPack& pack);

/// cross_attention of the queries in qkv [S, (H + 2 G) K] over kv [L, 2 G K]. For ranks that share
/// a sample: the queries see more keys and values than this rank's own in qkv.
Tensor attention_over(Tape& tape, const Tensor& qkv, const Tensor& kv, const AttentionPack& pack);

/// Attention of q [S, H K] over kv [L, 2 G K]; a row of kv holds the keys and values of a token.
/// The result of a sample without keys is zero.
Tensor cross_attention(Tape& tape, const Tensor& q, const Tensor& kv, const AttentionPack& pack);

/// Attention of T5, softmax(q k^T + bias) v, without scale. The bias depends on the distance of
/// query and key. The tensors q, k and v are [S, H K], all f32 or all bf16. The bias is
/// [H, 2 R - 1] f32. Element R - 1 + query - key is added, with positions counted from the first of
/// the sample. R is at least the length of the longest sample. Needs key_heads == heads and no
/// causal mask. Forward only: throws Error if the tape records.
Tensor relative_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& bias, const AttentionPack& pack);

}  // namespace vfm::ops
