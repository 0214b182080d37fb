// The kernels behind gelu.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/pointwise/gelu_kind.h"

namespace vfm::ops {

// y = gelu(x), and dx = dy gelu'(x), of the kinds erf and tanh. dx may be dy. All have `type`.
// Backward also computes y, with the same bits, unless it is null.
VFM_ISA_KERNEL(void, gelu_forward, DType type, Gelu kind, const void* x, void* y, std::int64_t n)
VFM_ISA_KERNEL(void, gelu_backward, DType type, Gelu kind, const void* x, const void* dy, void* dx,
               void* y, std::int64_t n)

}  // namespace vfm::ops
