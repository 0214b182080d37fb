// The kernels behind text_activations.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/pointwise/gelu_kind.h"

namespace vfm::ops {

// x = max(x, 0); x = gelu(x); x = gelu(x) factor with the tanh gelu; all have `type`
VFM_ISA_KERNEL(void, relu, DType type, void* x, std::int64_t n)
VFM_ISA_KERNEL(void, gelu_in_place, DType type, Gelu kind, void* x, std::int64_t n)
VFM_ISA_KERNEL(void, gated_gelu, DType type, void* x, const void* factor, std::int64_t n)

}  // namespace vfm::ops
