// The CPU kernels behind learned_positions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cpu/isa.h"

namespace vfm::ops {

struct PositionArgs {
  std::int64_t tokens = 0, width = 0;
  bool unit = true;                      // result = e / norm; else e, and every norm is 1
  const std::int32_t* places = nullptr;  // [S, 3]: rows of the tables t, h, w
  const float* tables[3] = {};           // [*, D]
  float* result = nullptr;               // [S, D]
  float* norms = nullptr;                // [S]: 1e-6 + rms(e)
  const float* dy = nullptr;             // backward only
  float* scratch = nullptr;              // backward only: [S]
  float* gradients[3] = {};              // backward only: of the tables, zeroed
};

VFM_EACH_ISA(void positions_forward(const PositionArgs& args);
             void positions_backward(const PositionArgs& args);)

}  // namespace vfm::ops
