// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/layer_norm.h"

#include <utility>

#include "base/error.h"
#include "ops/backward.h"
#include "ops/norm/norm_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

LayerNormArgs arguments_of(const Tensor& x, const Tensor& weight, float epsilon) {
  LayerNormArgs args;
  args.rows = x.size(0), args.width = x.size(1);
  args.epsilon = epsilon;
  args.x = x.data<float>();
  args.weight = weight.data<float>();
  return args;
}

void check_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.dims() != 2) fail("layer_norm: x {} is not a matrix", to_string(x.shape()));
  const Shape row{x.size(1)};
  if (x.dtype() != DType::f32 || weight.dtype() != DType::f32 || bias.dtype() != DType::f32)
    fail("layer_norm of {}, weight {}, bias {}: all are f32", dtype_name(x.dtype()),
         dtype_name(weight.dtype()), dtype_name(bias.dtype()));
  if (weight.shape() != row || bias.shape() != row)
    fail("layer_norm: weight {} and bias {} do not fit x {}", to_string(weight.shape()),
         to_string(bias.shape()), to_string(x.shape()));
  if (weight.device() != x.device() || bias.device() != x.device())
    fail("layer_norm: x, weight and bias are on different devices");
}

}  // namespace

void layer_norm_backward(Tape& tape, Tensor dy, const Tensor& x, const Tensor& weight,
                         const Tensor& bias, float epsilon) {
  if (dy.dtype() != DType::f32) dy = dy.to(DType::f32);
  Tensor dx = dy.unique() ? dy : Tensor(x.shape(), DType::f32, x.device());
  LayerNormArgs args = arguments_of(x, weight, epsilon);
  args.dy = dy.data<float>();
  args.dx = dx.data<float>();
  Tensor both, partial;
  if (tape.wants_grad(weight) || tape.wants_grad(bias)) {
    const std::int64_t chunks = (x.size(0) + kLayerNormChunk - 1) / kLayerNormChunk;
    both = Tensor({2, x.size(1)}, DType::f32, x.device());
    partial = Tensor({chunks, 2, x.size(1)}, DType::f32, x.device());
    args.dboth = both.data<float>(), args.partial = partial.data<float>();
  }
  const auto numbers = [&] {
    return sizeof(float) * static_cast<std::size_t>(x.size(0) * kLayerNormNumbers);
  };
  VFM_RUN(Touching(x, weight, dy, dx, both, partial, partial).gpu_scratch(numbers),
          layer_norm_backward, args);
  if (tape.wants_grad(weight)) tape.accumulate(weight, both.rows(0, 1).reshape(weight.shape()));
  if (tape.wants_grad(bias)) tape.accumulate(bias, both.rows(1, 2).reshape(bias.shape()));
  dy = Tensor();
  tape.accumulate(x, std::move(dx));
}

Tensor layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          float epsilon) {
  check_layer_norm(x, weight, bias);
  Tensor y(x.shape(), DType::f32, x.device());
  LayerNormArgs args = arguments_of(x, weight, epsilon);
  args.bias = bias.data<float>();
  args.y = y.data<float>();
  VFM_RUN(Touching(x, weight, bias, y), layer_norm_forward, args);
  return y;
}

Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon) {
  const Tensor y = layer_norm_forward(x, weight, bias, epsilon);
  tape.record(y, {x, weight, bias},
              [=](Tape& t) { layer_norm_backward(t, t.take(y), x, weight, bias, epsilon); });
  return y;
}

}  // namespace vfm::ops
