// Per-head RMSNorm of queries and keys, then rotary positions, in one pass over the projection.
//
//   n = h / sqrt(mean(h^2) + eps) * weight          for each query and key head h of K elements
//   (n1, n2) -> (n1 cos - n2 sin, n2 cos + n1 sin)  n1, n2: the halves of n ("rotate half")
//
// Values pass through unchanged, so that the result is ready for attention.
// Sources: Henry et al., "Query-key normalization for transformers" (2020); Su et al., "RoFormer"
// (2021).
// Shape letters: S tokens, Hq, Hk, Hv heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

struct QkNormRope {
  int query_heads = 0, key_heads = 0, value_heads = 0;  ///< in this order in a row; each may be 0
  int head_dim = 0;
  Tensor query_weight, key_weight;  ///< [K] f32; undefined without such heads
  Tensor cosines, sines;            ///< [S, K / 2] f32; undefined for no rotation
  float epsilon = 1e-5f;
};

/// x is [S, (Hq + Hk + Hv) K], f32 or bf16. Returns the same shape and dtype. Deterministic.
Tensor qk_norm_rope(Tape& tape, const Tensor& x, const QkNormRope& layout);

}  // namespace vfm::ops
