// The kernels behind swiglu.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// x [rows, 2 width], y [rows, width]; all have `type`
VFM_ISA_KERNEL(void, swiglu_forward, DType type, const void* x, void* y, std::int64_t rows,
               std::int64_t width)
VFM_ISA_KERNEL(void, swiglu_backward, DType type, const void* x, const void* dy, void* dx,
               std::int64_t rows, std::int64_t width)

}  // namespace vfm::ops
