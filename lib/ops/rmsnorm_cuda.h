// The CUDA version behind rmsnorm.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

Tensor rmsnorm_cuda(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon);

}  // namespace vfm::ops
