// Per-head RMSNorm of queries and keys, then rotary positions, in one pass over the projection.
//
//   n = h / sqrt(mean(h^2) + eps) * weight    for each query and key head h of K elements
//   (a, b) -> (a cos - b sin, b cos + a sin)  for each angle i of the token
//
// a and b are elements i and K / 2 + i of n ("rotate half"). With `pairs` they are elements 2 i and
// 2 i + 1, as in the product of complex numbers of Wan and Flux. Which axis an angle belongs to is
// only the order of the tables: interleaved sections of axes need no option here.
// Either step may be missing, not both. A rotation alone is its own gradient's inverse, and its
// backward pass does not read x. Values pass through unchanged, so that the result is ready for
// attention. ops/norm/heads_norm.h is the norm over all heads.
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
  Tensor query_weight, key_weight;  ///< [K] f32; undefined without such heads; both: no norms
  Tensor cosines, sines;            ///< [S, K / 2] f32; undefined for no rotation
  float epsilon = 1e-5f;
  bool pairs = false;  ///< rotates neighbours, not halves; K is then a multiple of 4
};

/// x is [S, (Hq + Hk + Hv) K], f32 or bf16. Returns the same shape and dtype. Deterministic. Throws
/// Error for shapes that do not fit, and for queries or keys with neither norms nor angles.
Tensor qk_norm_rope(Tape& tape, const Tensor& x, const QkNormRope& layout);

}  // namespace vfm::ops
