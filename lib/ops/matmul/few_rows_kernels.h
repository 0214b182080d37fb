// The kernel behind few_rows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

struct FewRowsArgs {
  const float* x;       // [rows, columns]
  const void* w;        // [outputs, columns]
  DType type;           // of w: f32, bf16; on the CPU also f16; u8 holds int8 codes
  const float* scales;  // [outputs], or null
  const float* bias;    // [outputs], or null
  float* y;             // [rows, outputs]
  std::int64_t rows, columns, outputs;
};
VFM_ISA_KERNEL(void, few_rows, const FewRowsArgs& args)

}  // namespace vfm::ops
