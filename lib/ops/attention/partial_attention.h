// Attention whose keys come in parts: attention over each part, and the sum of the parts. For ops
// and layers that bring the parts together (nn/ring_attention.h). Nothing here is recorded.
//
// The result of a part is the softmax over its keys and the logarithm of the softmax's denominator.
// Parts a and b are combined with the weights exp(lse_a - lse) and exp(lse_b - lse), where
// lse = log(exp(lse_a) + exp(lse_b)). The backward pass of a part needs only the log-sum-exp and
// the output of all parts together, and the gradients of the parts add up.
// The result of a part stays f32 until all parts are combined. If each were rounded to bf16, about
// every third element of the sum would be another bf16 number, and E4M3 codes computed from it
// would sometimes differ by a whole step. On a GPU cuDNN computes parts where it computes whole
// attention (attention_choice.h). It rounds each to bf16, which is then changed to f32.
// Sources: Dao, "FlashAttention-2" (2023); Liu, Zaharia and Abbeel, "Ring attention with blockwise
// transformers for near-infinite context" (2023).
// Shape letters: S queries of the pack, L keys of the part, H heads, G key/value heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention.h"

namespace vfm::ops {

/// Attention over a part of the keys. For a sample without keys in the part both tensors are zero,
/// which AttentionSum ignores.
struct PartOfAttention {
  Tensor out;          ///< [S, H K] f32
  Tensor log_sum_exp;  ///< [H, S] f32
};
/// q [S, H K] and kv [L, 2 G K] are as in cross_attention. `pack` has the key lengths of the part
/// and is not causal.
PartOfAttention attend_part(const Tensor& q, const Tensor& kv, const AttentionPack& pack);

/// The part's share of the gradient of the queries, and the gradient of its keys and values, in q's
/// dtype.
struct PartGradients {
  Tensor dq, dkv;
};
/// `out` and `log_sum_exp` are of all parts together, `dout` is the gradient of `out`. `out` and
/// `dout` have q's dtype.
PartGradients attend_part_backward(const Tensor& q, const Tensor& kv, const AttentionPack& pack,
                                   const Tensor& out, const Tensor& log_sum_exp,
                                   const Tensor& dout);

/// Adds up parts in f32.
class AttentionSum {
 public:
  /// Adds the part. All parts have the same query lengths and heads as the first. Throws Error for
  /// a part that is not f32 or has another shape.
  void add(const PartOfAttention& part, const AttentionPack& pack);
  /// Adds attend_part(q, kv, pack).
  void add(const Tensor& q, const Tensor& kv, const AttentionPack& pack);

  /// [S, H K] f32; zero for queries for which no part has keys.
  const Tensor& out() const { return out_; }
  /// [H, S] f32; minus infinity for queries for which no part has keys.
  const Tensor& log_sum_exp() const { return log_sum_exp_; }

 private:
  Tensor out_, log_sum_exp_;
};

}  // namespace vfm::ops
