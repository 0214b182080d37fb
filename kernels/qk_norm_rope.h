// Per-head RMSNorm of queries and keys, and rotary positions, in one pass over the projection: the
// CUDA version of lib/ops/position/qk_norm_rope.h, where the formula is.
//
// Every element is read once and written once; a head stays in the registers of a few threads in
// between, so the time is that of copying. The sums for the weights are taken in two stages of a
// fixed order, which depends on the sizes only: the same bits on every GPU.
// Formulas: Henry et al., "Query-key normalization for transformers" (2020), Su et al., "RoFormer"
// (2021). Backward, with n = x r, r = 1 / sqrt(mean(x^2) + epsilon), and g = dy rotated back:
//   dweight += g n,   dx = r (g weight - n mean(g weight n))
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// What both directions need; S tokens, Hq, Hk, Hv heads in this order in a row, each may be 0, K
/// the head dimension. K is even and at most 256; S times the heads is below 2^31. Fast where a
/// pointer is aligned to 16 bytes and K / 2 elements are a multiple of that; right otherwise.
struct QkNormRope {
  std::int64_t tokens = 0;
  int query_heads = 0, key_heads = 0, value_heads = 0;
  int head_dim = 0;
  Type type = Type::f32;  ///< of x, y, dy and dx
  float epsilon = 1e-5f;
  const float* query_weight = nullptr;  ///< [K]; null where there are no such heads
  const float* key_weight = nullptr;
  const float* cosines = nullptr;  ///< [S, K / 2], or null: no rotation
  const float* sines = nullptr;
};

struct QkNormRopeForward : QkNormRope {
  const void* x = nullptr;  ///< [S, (Hq + Hk + Hv) K]
  void* y = nullptr;        ///< as x; may be x, and then values are not touched
  bool values = true;       ///< false: they are not copied to y, whose columns stay as they are
};

struct QkNormRopeBackward : QkNormRope {
  const void* x = nullptr;   ///< what forward read
  const void* dy = nullptr;  ///< as x
  void* dx = nullptr;        ///< as x, out; may be dy, and then values are not touched
  /// [K], out: the sums over all tokens and heads (zeros where there are none); null: not wanted.
  float* query_dweight = nullptr;
  float* key_dweight = nullptr;
  float* partial = nullptr;  ///< room for qk_norm_rope_partials() floats
};

/// Both return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes
/// other than those above, for heads without a weight and for cosines without sines.
int qk_norm_rope_forward(const QkNormRopeForward& call, CUstream_st* stream);
int qk_norm_rope_backward(const QkNormRopeBackward& call, CUstream_st* stream);

/// The floats of `partial`: 0 if no weight's gradient is wanted. A small part of x.
std::int64_t qk_norm_rope_partials(const QkNormRopeBackward& call);

}  // namespace vfm::kernels
