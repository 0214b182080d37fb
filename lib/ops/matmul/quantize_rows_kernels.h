// The kernels behind quantize_rows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/matmul/quantize_rows.h"

namespace vfm::ops {

VFM_KERNEL(void, largest_of_rows, const Tensor& x, const Tensor& largest)
VFM_KERNEL(void, quantize_rows, const Tensor& x, const Tensor& largest, const QuantizedRows& rows)
VFM_KERNEL(void, dequantize_rows, const QuantizedRows& rows, const Tensor& x)

}  // namespace vfm::ops
