// The kernels behind qk_norm_rope.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

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

}  // namespace vfm::ops
