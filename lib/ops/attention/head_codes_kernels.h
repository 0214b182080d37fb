// The kernels behind head_codes.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/head_codes.h"
#include "ops/kernel.h"

namespace vfm::ops {

VFM_KERNEL(void, largest_of_heads, const Tensor& x, const HeadLayout& layout, const Tensor& largest)
VFM_KERNEL(void, largest_of_parts, const Tensor& largest, const Tensor& all)
VFM_KERNEL(void, quantize_heads, const Tensor& x, const HeadLayout& layout, const Tensor& largest,
           const Tensor& codes)
VFM_KERNEL(void, restore_heads, const Tensor& codes, const HeadLayout& layout,
           const Tensor& largest, const Tensor& x)

}  // namespace vfm::ops
