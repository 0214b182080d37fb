// The kernel behind turn_heads.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

struct TurnHeadsArgs {
  float* x;              // [rows, width]
  const float* cosines;  // [rows, half]
  const float* sines;    // [rows, half]
  std::int64_t rows, width;
  int heads, half;
};
VFM_KERNEL(void, turn_heads, const TurnHeadsArgs& args)

}  // namespace vfm::ops
