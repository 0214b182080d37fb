// A norm with one head as wide as the row, which is what qk_norm_rope computes.
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/norm_kernels.h"
#include "ops/position/position_kernels.h"

namespace vfm::ops {
namespace {

QkNormRopeArgs one_head(const Tensor& x, const Tensor& weight, float epsilon) {
  QkNormRopeArgs args;
  args.tokens = x.size(0);
  args.query_heads = 1;
  args.head_dim = static_cast<int>(x.size(1));
  args.epsilon = epsilon;
  args.query_weight = weight.data<float>();
  args.x = x.raw();
  return args;
}

}  // namespace

void cpu::rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& y) {
  QkNormRopeArgs args = one_head(x, weight, epsilon);
  args.y = y.raw();
  qk_norm_rope_forward(args);
}

void cpu::rmsnorm_backward(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& dy,
                           const Tensor& dx, const Tensor& dweight) {
  QkNormRopeArgs args = one_head(x, weight, epsilon);
  args.dy = dy.raw();
  args.y = dx.raw();
  qk_norm_rope_gradients(args, dweight, {});
}

}  // namespace vfm::ops
