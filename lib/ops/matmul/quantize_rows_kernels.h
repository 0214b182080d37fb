// The kernels behind quantize_rows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/matmul/quantize_rows.h"

namespace vfm::ops {

VFM_KERNEL(void, largest_of_rows, const Tensor& x, const Tensor& largest)
VFM_KERNEL(void, quantize_rows, const Tensor& x, const Tensor& largest, const QuantizedRows& rows)
// Dequantises to x [rows, columns] of `type`; codes and scales are plain pointers.
struct RowCodes {
  const std::uint8_t* codes;
  const float* scales;
  bool e4m3;
  std::int64_t rows, columns;
};
VFM_ISA_KERNEL(void, dequantize_rows, const RowCodes& codes, DType type, void* x)

}  // namespace vfm::ops
