// The CUDA version behind rmsnorm.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// Without recording.
Tensor rmsnorm_forward_cuda(const Tensor& x, const Tensor& weight, float epsilon);
/// Accumulates the gradients of x and weight. dy, f32, is overwritten if nobody else has it.
void rmsnorm_backward_cuda(Tape& tape, const Tensor& dy, const Tensor& x, const Tensor& weight,
                           float epsilon);

}  // namespace vfm::ops
