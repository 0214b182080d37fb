// The kernels of positions and of rotations by them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

// The kernels behind positions.h.

struct TokenGrid;  // positions.h

/// Plain pointers of one call.
struct PositionArgs {
  std::int64_t tokens = 0, width = 0;
  bool unit = true;             // result = e / norm; if false, result = e and every norm is 1
  const float* tables[3] = {};  // [*, D]
  std::int64_t table_rows[3] = {};
  float* result = nullptr;    // [S, D]
  float* norms = nullptr;     // [S]: 1e-6 + rms(e)
  const float* dy = nullptr;  // backward only
  float* gradients[3] = {};   // backward only: gradients of the tables, zeroed by the caller
};

// Steps of the grids must be 1.
VFM_KERNEL(void, learned_positions_forward, const PositionArgs& args,
           const std::vector<TokenGrid>& grids)
VFM_KERNEL(void, learned_positions_backward, const PositionArgs& args,
           const std::vector<TokenGrid>& grids)
VFM_KERNEL(void, sinusoid, const Tensor& times, const Tensor& result)

// Inner part of the CPU version: places [S, 3] are rows of the tables t, h, w; scratch is [S].
VFM_CPU_KERNEL(void, positions_forward, const PositionArgs& args, const std::int32_t* places)
VFM_CPU_KERNEL(void, positions_backward, const PositionArgs& args, const std::int32_t* places,
               float* scratch)

// The kernels behind qk_norm_rope.h.

struct QkNormRopeArgs {
  std::int64_t tokens = 0;
  int query_heads = 0, key_heads = 0, value_heads = 0, head_dim = 0;
  DType type = DType::f32;  // of x, y and dy
  float epsilon = 0;
  const float* query_weight = nullptr;  // both null for no norms
  const float* key_weight = nullptr;
  const float* cosines = nullptr;  // null for no rotation
  const float* sines = nullptr;
  bool pairs = false;
  const void* x = nullptr;
  void* y = nullptr;         // in backward: dx, which may be dy
  bool values = true;        // forward only: copy the values to y
  const void* dy = nullptr;  // backward only
  // Backward of norms only, [chunks, 3 K]: sums for the two weights, and scratch for a head.
  float* partial = nullptr;
};

/// Number of tokens whose weight gradients are summed together in backward.
inline constexpr std::int64_t kNormChunk = 64;

VFM_ISA_KERNEL(void, qk_norm_rope_forward, const QkNormRopeArgs& args)
// Writes dx to args.y without reading args.x if there are no norms. Adds the gradients of the
// weights to `query` and `key`, zeroed by the caller, if they are defined.
VFM_KERNEL(void, qk_norm_rope_gradients, const QkNormRopeArgs& args, const Tensor& query,
           const Tensor& key)

// Writes dx, and the partial sums of the weights' gradients.
VFM_CPU_KERNEL(void, qk_norm_rope_backward, const QkNormRopeArgs& args)

// The kernels behind turn_heads.h.

struct TurnHeadsArgs {
  float* x;              // [rows, width]
  const float* cosines;  // [rows, half]; of turn_neighbours [rows, 2 half]
  const float* sines;    // like cosines
  std::int64_t rows, width;
  int heads, half;
};
VFM_KERNEL(void, turn_heads, const TurnHeadsArgs& args)
VFM_KERNEL(void, turn_neighbours, const TurnHeadsArgs& args)

}  // namespace vfm::ops
