// The kernels behind frame_attention.h: softmax over rows of scores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// p = softmax(scale * s) of each row of `columns`; p is of `type`
VFM_ISA_KERNEL(void, softmax_rows, const float* s, DType type, void* p, std::int64_t rows,
               std::int64_t columns, float scale)
// ds = scale * p (dp - the row's sum of p dp); ds may be where dp is; p and ds are of `type`
VFM_ISA_KERNEL(void, softmax_rows_backward, DType type, const void* p, const float* dp, void* ds,
               std::int64_t rows, std::int64_t columns, float scale)

}  // namespace vfm::ops
