// The kernels behind low_rank.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// The first `narrow` columns of y [rows, wide] += scale x [rows, narrow]; both have `type`.
VFM_ISA_KERNEL(void, add_scaled_columns, DType type, void* y, std::int64_t wide, const void* x,
               std::int64_t narrow, std::int64_t rows, float scale)

}  // namespace vfm::ops
