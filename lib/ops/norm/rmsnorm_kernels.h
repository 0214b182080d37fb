// The kernels behind rmsnorm.h; f32 throughout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

VFM_KERNEL(void, rmsnorm_forward, const Tensor& x, const Tensor& weight, float epsilon,
           const Tensor& y)
/// On a GPU the weight's gradient is summed over so many rows, and these sums then.
inline constexpr std::int64_t kRmsnormChunk = 16;

/// dx may be dy; dweight is zeros, or undefined: it is not wanted.
VFM_KERNEL(void, rmsnorm_backward, const Tensor& x, const Tensor& weight, float epsilon,
           const Tensor& dy, const Tensor& dx, const Tensor& dweight)

}  // namespace vfm::ops
