// The kernels behind positions.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

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

}  // namespace vfm::ops
