// The kernels behind layer_norm.h; f32 throughout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

/// Plain pointers of one call.
struct LayerNormArgs {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0;
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  float* y = nullptr;             // like x
};

VFM_ISA_KERNEL(void, layer_norm_forward, const LayerNormArgs& args)

}  // namespace vfm::ops
