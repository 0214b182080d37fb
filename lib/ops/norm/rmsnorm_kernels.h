// The kernels behind rmsnorm.h; f32 throughout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

VFM_KERNEL(void, rmsnorm_forward, const Tensor& x, const Tensor& weight, float epsilon,
           const Tensor& y)
/// Rows over which the weight's gradient is summed first on a GPU, before those sums are added.
inline constexpr std::int64_t kRmsnormChunk = 16;

/// dx may be dy. dweight holds zeros, or is undefined if not wanted.
VFM_KERNEL(void, rmsnorm_backward, const Tensor& x, const Tensor& weight, float epsilon,
           const Tensor& dy, const Tensor& dx, const Tensor& dweight)

}  // namespace vfm::ops
