// The CUDA versions behind rows.h. The arguments have been checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/pointwise/rows.h"

namespace vfm::ops {

void gather_rows_cuda(const Tensor& x, const Tensor& numbers, const Tensor& y);
void add_rows_cuda(const Tensor& x, const RowTakers& takers, const Tensor& to);

}  // namespace vfm::ops
