// The CUDA version of backward in qk_norm_rope.h (forward is cuda::qk_norm_rope_forward).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/position/qk_norm_rope_cpu.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Writes dx to args.y; and the gradients of the weights where a tensor is given for them.
void qk_norm_rope_backward_cuda(const QkNormRopeArgs& args, const Tensor& query_gradient,
                                const Tensor& key_gradient);

}  // namespace vfm::ops
