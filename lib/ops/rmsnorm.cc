// On the CPU a norm with one head as wide as the row, which is what qk_norm_rope computes.
// SPDX-License-Identifier: Apache-2.0
#include "ops/rmsnorm.h"

#include "base/error.h"
#include "ops/qk_norm_rope.h"
#include "ops/rmsnorm_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

Tensor rmsnorm(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon) {
  if (x.dims() != 2) fail("rmsnorm: x {} is not a matrix", to_string(x.shape()));
  if constexpr (kHaveCuda)
    if (x.device() == Device::cuda) return rmsnorm_cuda(tape, x, weight, epsilon);
  QkNormRope layout;
  layout.query_heads = 1;
  layout.head_dim = static_cast<int>(x.size(1));
  layout.query_weight = weight;
  layout.epsilon = epsilon;
  return qk_norm_rope(tape, x, layout);
}

}  // namespace vfm::ops
