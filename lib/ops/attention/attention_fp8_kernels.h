// The kernels of attention in FP8, and of the codes that its heads have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_fp8.h"
#include "ops/attention/attention_kernels.h"
#include "ops/kernel.h"

namespace vfm::ops {

/// The CPU has plain loops over the rounded numbers, slow, as a reference for the GPU. The work
/// items and the scratch of `args` are not used; log_sum_exp may be null.
VFM_KERNEL(void, attention_fp8_forward, const AttentionArgs& args, const AttentionPack& pack)

// Codes of heads.

VFM_KERNEL(void, largest_of_heads, const Tensor& x, const HeadLayout& layout, const Tensor& largest)
VFM_KERNEL(void, largest_of_parts, const Tensor& largest, const Tensor& all)
VFM_KERNEL(void, quantize_heads, const Tensor& x, const HeadLayout& layout, const Tensor& largest,
           const Tensor& codes)
VFM_KERNEL(void, restore_heads, const Tensor& codes, const HeadLayout& layout,
           const Tensor& largest, const Tensor& x)

}  // namespace vfm::ops
