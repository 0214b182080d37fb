// Per-head RMSNorm of queries and keys, and rotary positions, in one pass over the projection: the
// CUDA version of lib/ops/position/qk_norm_rope.h, which has the formula.
//
// Every element is read once and written once; a head stays in the registers of a few threads in
// between, so the time is that of a copy. The sums for the weights have two stages in a fixed order
// that depends only on the sizes: the bits are the same on every GPU.
// Formulas: Henry et al., "Query-key normalization for transformers" (2020), Su et al., "RoFormer"
// (2021). Backward, with n = x r, r = 1 / sqrt(mean(x^2) + epsilon), and g = dy rotated back:
//   dweight += g n,   dx = r (g weight - n mean(g weight n))
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The arguments of both directions. S tokens; Hq, Hk, Hv heads in this order in a row, each may be
/// 0; K head dimension, even (a multiple of 4 with `pairs`) and at most 256. S times the heads is
/// below 2^31. Fast if pointers are aligned to 16 bytes and K / 2 elements are a multiple of 16
/// bytes; other cases give correct results.
struct QkNormRope {
  std::int64_t tokens = 0;
  int query_heads = 0, key_heads = 0, value_heads = 0;
  int head_dim = 0;
  Type type = Type::f32;  ///< of x, y, dy and dx
  float epsilon = 1e-5f;
  const float* query_weight = nullptr;  ///< [K]; null without such heads; both null: no norms
  const float* key_weight = nullptr;
  const float* cosines = nullptr;  ///< [S, K / 2]; null for no rotation
  const float* sines = nullptr;
  bool pairs = false;  ///< angle i turns elements 2 i and 2 i + 1, not i and K / 2 + i
};

struct QkNormRopeForward : QkNormRope {
  const void* x = nullptr;  ///< [S, (Hq + Hk + Hv) K]
  void* y = nullptr;        ///< like x; may be x, then values are not touched
  bool values = true;       ///< false: the values are not copied, their columns of y stay unchanged
  bool back = false;        ///< turns by the negative angles; only without norms
};

struct QkNormRopeBackward : QkNormRope {
  const void* x = nullptr;   ///< the input of forward; not read without norms
  const void* dy = nullptr;  ///< like x
  void* dx = nullptr;        ///< like x, output; may be dy, then values are not touched
  /// [K], output: the sums over all tokens and heads; zeros without them; null if not wanted.
  float* query_dweight = nullptr;
  float* key_dweight = nullptr;
  float* partial = nullptr;  ///< scratch of qk_norm_rope_partials() floats
};

/// Both return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes
/// other than those above, for a kind of heads without a weight where the other kind has one, for
/// heads with neither weights nor angles, and for cosines without sines.
int qk_norm_rope_forward(const QkNormRopeForward& call, CUstream_st* stream);
int qk_norm_rope_backward(const QkNormRopeBackward& call, CUstream_st* stream);

/// Returns the number of floats of `partial`: small compared with x; 0 if no gradient of a weight
/// is wanted.
std::int64_t qk_norm_rope_partials(const QkNormRopeBackward& call);

}  // namespace vfm::kernels
