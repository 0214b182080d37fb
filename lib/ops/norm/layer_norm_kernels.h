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
  float* y = nullptr;             // like x; forward
  const float* dy = nullptr;      // like x; backward
  float* dx = nullptr;            // like x; may be dy
  float* dboth = nullptr;         // [2, width] output: of weight and bias, or null
  float* partial = nullptr;       // [chunks, 2, width] scratch, with dboth
};

/// Number of rows whose gradients of weight and bias are summed together.
inline constexpr std::int64_t kLayerNormChunk = 32;
/// Numbers of a row that the GPU's backward pass keeps between its kernels.
inline constexpr std::int64_t kLayerNormNumbers = 5;

VFM_ISA_KERNEL(void, layer_norm_forward, const LayerNormArgs& args)
VFM_ISA_KERNEL(void, layer_norm_backward, const LayerNormArgs& args)

}  // namespace vfm::ops
