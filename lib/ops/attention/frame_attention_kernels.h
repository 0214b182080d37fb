// The kernels behind frame_attention.h: softmax over rows of scores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// p = softmax(scale * s) of each row of `columns` elements; p has `type`.
VFM_ISA_KERNEL(void, softmax_rows, const float* s, DType type, void* p, std::int64_t rows,
               std::int64_t columns, float scale)
// ds = scale * p (dp - sum of p dp over the row). ds may overwrite dp; p and ds have `type`.
VFM_ISA_KERNEL(void, softmax_rows_backward, DType type, const void* p, const float* dp, void* ds,
               std::int64_t rows, std::int64_t columns, float scale)

}  // namespace vfm::ops
