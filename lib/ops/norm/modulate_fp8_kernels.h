// The kernel behind gated_residual_layernorm_modulate_fp8() of modulate.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/matmul/quantize.h"
#include "ops/norm/modulate_kernels.h"

namespace vfm::ops {

// args.normed is null. The result is `normed`, [S, D], rounded to args.type before it is quantised.
VFM_KERNEL(void, modulate_fp8, const ModulateArgs& args, const Quantized& normed)

}  // namespace vfm::ops
