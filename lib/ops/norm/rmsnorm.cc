// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/rmsnorm.h"

#include <utility>

#include "base/error.h"
#include "ops/backward.h"
#include "ops/norm/norm_kernels.h"
#include "ops/position/position_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon) {
  if (x.dims() != 2) fail("rmsnorm: x {} is not a matrix", to_string(x.shape()));
  if (x.dtype() != DType::f32 || weight.dtype() != DType::f32 || weight.shape() != Shape{x.size(1)})
    fail("rmsnorm: x {} {}, weight {}", dtype_name(x.dtype()), to_string(x.shape()),
         to_string(weight.shape()));
  const Tensor y(x.shape(), DType::f32, x.device());
  VFM_RUN(Touching(x, weight, y), rmsnorm_forward, x, weight, epsilon, y);
  return y;
}

void rmsnorm_backward(Tape& tape, Tensor dy, const Tensor& x, const Tensor& weight, float epsilon) {
  if (dy.dtype() != DType::f32) dy = dy.to(DType::f32);
  Tensor dx = dy.unique() ? dy : Tensor(x.shape(), DType::f32, x.device());
  const Tensor dweight =
      tape.wants_grad(weight) ? Tensor::zeros(weight.shape(), DType::f32, x.device()) : Tensor();
  const auto sums = [&] {
    const std::int64_t rows = (x.size(0) + kRmsnormChunk - 1) / kRmsnormChunk;
    return dweight.defined() ? sizeof(float) * static_cast<std::size_t>(rows * x.size(1)) : 0;
  };
  VFM_RUN(Touching(x, weight, dy, dx, dweight).gpu_scratch(sums), rmsnorm_backward, x, weight,
          epsilon, dy, dx, dweight);
  if (dweight.defined()) tape.accumulate(weight, dweight);
  tape.accumulate(x, std::move(dx));
}

Tensor rmsnorm(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon) {
  const Tensor y = rmsnorm_forward(x, weight, epsilon);
  tape.record(y, {x, weight}, [=](Tape& t) { rmsnorm_backward(t, t.take(y), x, weight, epsilon); });
  return y;
}

namespace {

// A norm with one head as wide as the row, which is what qk_norm_rope computes.
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
