// The CUDA version behind quantize.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/quantize.h"

namespace vfm::ops {

void quantize_cuda(const Tensor& x, const Quantized& result);

/// As check_gpu(), for the launchers that answer "not supported" on a GPU without FP8: says so.
void check_fp8_gpu(int status, const char* what);

}  // namespace vfm::ops
