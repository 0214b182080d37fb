// The kernels behind fsq.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/pointwise/fsq.h"

namespace vfm::ops {

VFM_KERNEL(void, fsq_forward, const Tensor& z, const FsqLevels& levels, const Tensor& values)
/// Computes dz, the gradient of z, from the gradient of the values.
VFM_KERNEL(void, fsq_backward, const Tensor& z, const FsqLevels& levels, const Tensor& dvalues,
           const Tensor& dz)

}  // namespace vfm::ops
