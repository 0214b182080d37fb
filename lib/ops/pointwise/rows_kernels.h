// The kernels behind rows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/pointwise/rows.h"

namespace vfm::ops {

VFM_KERNEL(void, gather_rows, const Tensor& x, const Tensor& numbers, const Tensor& y)
VFM_KERNEL(void, add_rows, const Tensor& x, const RowTakers& takers, const Tensor& to)

}  // namespace vfm::ops
