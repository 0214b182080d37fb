// The kernels behind silu.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// y = silu(x), and dx = dy silu'(x)
VFM_ISA_KERNEL(void, silu_forward, const float* x, float* y, std::int64_t n)
VFM_ISA_KERNEL(void, silu_backward, const float* x, const float* dy, float* dx, std::int64_t n)

}  // namespace vfm::ops
