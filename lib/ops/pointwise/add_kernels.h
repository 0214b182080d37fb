// The kernels behind add.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// y += x
VFM_ISA_KERNEL(void, add_into, DType y_type, void* y, DType x_type, const void* x, std::int64_t n)
// own = the sum in order of `parts` terms of n elements each: term `place` is own, the others are
// `others`
VFM_ISA_KERNEL(void, add_in_order, DType type, void* own, int place, const void* others, int parts,
               std::int64_t n)
// sum = a + the first columns of b; db = dsum, then zeros: [rows, narrow], [rows, wide]
VFM_ISA_KERNEL(void, add_columns, const float* a, const float* b, float* sum, std::int64_t rows,
               std::int64_t narrow, std::int64_t wide)
VFM_ISA_KERNEL(void, add_columns_backward, const float* dsum, float* db, std::int64_t rows,
               std::int64_t narrow, std::int64_t wide)

}  // namespace vfm::ops
