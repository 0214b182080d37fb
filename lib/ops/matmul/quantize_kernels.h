// The kernels behind quantize.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/matmul/quantize.h"

namespace vfm::ops {

VFM_KERNEL(void, quantize, const Tensor& x, const Quantized& result)
VFM_KERNEL(void, largest_magnitude, const Tensor& x, const Tensor& largest)
VFM_KERNEL(void, quantize_part, const Tensor& x, const Tensor& largest, const Quantized& result)
VFM_KERNEL(void, quantize_gelu, const Tensor& x, const Quantized& result)

}  // namespace vfm::ops
