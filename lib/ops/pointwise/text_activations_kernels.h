// The kernels behind text_activations.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// x = max(x, 0); x = gelu_tanh(x) factor; all of `type`
VFM_ISA_KERNEL(void, relu, DType type, void* x, std::int64_t n)
VFM_ISA_KERNEL(void, gated_gelu, DType type, void* x, const void* factor, std::int64_t n)

}  // namespace vfm::ops
