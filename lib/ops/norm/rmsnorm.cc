// On the CPU a norm with one head as wide as the row, which is what qk_norm_rope computes.
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/rmsnorm.h"

#include <utility>

#include "base/error.h"
#include "ops/backward.h"
#include "ops/norm/rmsnorm_cuda.h"
#include "ops/position/qk_norm_rope.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

QkNormRope one_head(const Tensor& x, const Tensor& weight, float epsilon) {
  QkNormRope layout;
  layout.query_heads = 1;
  layout.head_dim = static_cast<int>(x.size(1));
  layout.query_weight = weight;
  layout.epsilon = epsilon;
  return layout;
}

}  // namespace

Tensor rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon) {
  if (x.dims() != 2) fail("rmsnorm: x {} is not a matrix", to_string(x.shape()));
  if constexpr (kHaveCuda)
    if (x.device() == Device::cuda) return rmsnorm_forward_cuda(x, weight, epsilon);
  Tape silent(false);
  return qk_norm_rope(silent, x, one_head(x, weight, epsilon));
}

void rmsnorm_backward(Tape& tape, Tensor dy, const Tensor& x, const Tensor& weight, float epsilon) {
  if constexpr (kHaveCuda)
    if (x.device() == Device::cuda) {
      dy = dy.to(DType::f32);
      return rmsnorm_backward_cuda(tape, dy, x, weight, epsilon);
    }
  qk_norm_rope_gradients(tape, std::move(dy), x, one_head(x, weight, epsilon));
}

Tensor rmsnorm(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon) {
  const Tensor y = rmsnorm_forward(x, weight, epsilon);
  tape.record(y, {x, weight}, [=](Tape& t) { rmsnorm_backward(t, t.take(y), x, weight, epsilon); });
  return y;
}

}  // namespace vfm::ops
