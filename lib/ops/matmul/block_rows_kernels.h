// The kernels behind block_rows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/block_format.h"
#include "ops/kernel.h"

namespace vfm::ops {

struct BlockRowsArgs {
  BlockFormat format;
  const std::uint8_t* w;  // [outputs, bytes of a row]
  std::int64_t outputs, columns;
  const float* x = nullptr;     // [rows, columns]
  const float* bias = nullptr;  // [outputs], or null
  void* y = nullptr;            // [rows, outputs] f32; of dequantize_blocks [outputs, columns]
  std::int64_t rows = 0;
};
// y = x w^T (+ bias)
VFM_CPU_KERNEL(void, few_rows_of_blocks, const BlockRowsArgs& args)
// y = w in `type`
VFM_CPU_KERNEL(void, dequantize_blocks, const BlockRowsArgs& args, DType type)

}  // namespace vfm::ops
