// Attention whose keys come in parts: each part by itself, and their sum. For ops and layers that
// bring the parts together (nn/ring_attention.h); nothing here is recorded.
//
// A part gives the softmax over its own keys and the logarithm of the sum below the fraction. Two
// parts a and b are one with the weights exp(lse_a - lse) and exp(lse_b - lse), where
// lse = log(exp(lse_a) + exp(lse_b)). Backward a part only needs the log-sum-exp and the output of
// all parts together, and its gradients add up.
// A part's result stays f32 until all are one: rounded to bf16 each, the sum of two parts would be
// another bf16 number than the whole in every third element or so, and E4M3 made of that now and
// then a whole step away.
// Sources: Dao, "FlashAttention-2" (2023); Liu, Zaharia and Abbeel, "Ring attention with blockwise
// transformers for near-infinite context" (2023).
// Shape letters: S queries of the pack, L keys of the part, H heads, G key/value heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention.h"

namespace vfm::ops {

/// Attention over a part of the keys, by our own kernels. A sample without keys in it has zeros in
/// both, which no sum uses.
struct PartOfAttention {
  Tensor out;          ///< [S, H K] f32, or what attend_part_fp8() was asked for
  Tensor log_sum_exp;  ///< [H, S] f32
};
/// q [S, H K], kv [L, 2 G K], as cross_attention has them; `pack` with the key lengths of the part,
/// not causal.
PartOfAttention attend_part(const Tensor& q, const Tensor& kv, const AttentionPack& pack);

/// A part's share of the gradient of the queries, and that of its keys and values; of q's dtype.
struct PartGradients {
  Tensor dq, dkv;
};
/// `out` and `log_sum_exp` are those of all parts, `dout` the gradient of `out`, all of q's dtype
/// but the second.
PartGradients attend_part_backward(const Tensor& q, const Tensor& kv, const AttentionPack& pack,
                                   const Tensor& out, const Tensor& log_sum_exp,
                                   const Tensor& dout);

/// The sum of parts, in f32.
class AttentionSum {
 public:
  /// Adds the part. The queries' lengths and the heads are those of the first one. Throws Error
  /// for a part that is not f32, or of another shape.
  void add(const PartOfAttention& part, const AttentionPack& pack);
  /// The same of attend_part().
  void add(const Tensor& q, const Tensor& kv, const AttentionPack& pack);

  /// [S, H K] f32: zero for queries that no part has keys for.
  const Tensor& out() const { return out_; }
  /// [H, S] f32: minus infinity for those.
  const Tensor& log_sum_exp() const { return log_sum_exp_; }

 private:
  Tensor out_, log_sum_exp_;
};

}  // namespace vfm::ops
