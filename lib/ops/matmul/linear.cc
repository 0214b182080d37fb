// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/linear.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/matmul/bias.h"
#include "ops/matmul/gemm.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

void check(const Tensor& x, const Tensor& w, DType out) {
  const bool fits = x.dims() == 2 && w.dims() == 2 && x.size(1) == w.size(1);
  if (!fits) fail("linear: x {} does not fit w {}", to_string(x.shape()), to_string(w.shape()));
  if (x.dtype() != w.dtype() || (x.dtype() != DType::f32 && x.dtype() != DType::bf16) ||
      (out != DType::f32 && out != x.dtype()))
    fail("linear: no product of {} and {} into {}", dtype_name(x.dtype()), dtype_name(w.dtype()),
         dtype_name(out));
  if (x.device() != w.device())
    fail("linear: x is on {}, w on {}", device_name(x.device()), device_name(w.device()));
}

}  // namespace

std::vector<Tensor> inputs_with(std::vector<Tensor> others, const LinearWeight& weight) {
  others.push_back(weight.w);
  for (const LowRank& added : weight.added)
    others.insert(others.end(), {added.a, added.b});
  return others;
}

void multiply_into(const Tensor& x, const LinearWeight& weight, const Tensor& values,
                   const Tensor& y) {
  const std::int64_t n = x.size(0), in = x.size(1), wide = y.size(1);
  gemm(y.device(), n, wide, in, {x.raw(), x.dtype(), in, false},
       {values.raw(), weight.w.dtype(), in, true}, y.raw(), y.dtype(), wide, false);
  for (const LowRank& added : weight.added)
    add_low_rank(y, x, added);
}

void input_gradient_into(const Tensor& dy, const LinearWeight& weight, const Tensor& values,
                         const Tensor& dx) {
  const std::int64_t n = dy.size(0), in = dx.size(1), out = dy.size(1);
  gemm(dy.device(), n, in, out, {dy.raw(), dy.dtype(), out, false},
       {values.raw(), weight.w.dtype(), in, false}, dx.raw(), dy.dtype(), in, false);
  for (const LowRank& added : weight.added)
    low_rank_input_gradient(dy, added, dx);
}

LinearInputGradient linear_input_gradient(const Tensor& dy, const LinearWeight& weight,
                                          bool want_dx) {
  const Tensor& w = weight.w;
  const std::int64_t n = dy.size(0), in = w.size(1), out = w.size(0);
  LinearInputGradient result;
  if (want_dx) {
    result.dx = Tensor({n, in}, dy.dtype(), dy.device());
    const Tensor values = weight.values();
    gemm(dy.device(), n, in, out, {dy.raw(), dy.dtype(), out, false},
         {values.raw(), w.dtype(), in, false}, result.dx.raw(), dy.dtype(), in, false);
  }
  for (const LowRank& added : weight.added)
    result.inner.push_back(low_rank_input_gradient(dy, added, result.dx));
  return result;
}

void linear_weight_gradients(Tape& tape, const Tensor& dy, const Tensor& x,
                             const LinearWeight& weight, const std::vector<Tensor>& inner) {
  const Tensor& w = weight.w;
  const std::int64_t n = x.size(0), in = x.size(1), out = w.size(0);
  if (tape.wants_grad(w)) {
    const Tape::Sum sum = tape.sum_of(w);
    const Tensor dw = sum.tensor.defined() ? sum.tensor : Tensor(w.shape(), DType::f32, w.device());
    gemm(dw.device(), out, in, n, {dy.raw(), dy.dtype(), out, true},
         {x.raw(), x.dtype(), in, false}, dw.raw(), DType::f32, in, sum.add);
    if (!sum.tensor.defined()) tape.accumulate(w, dw);
  }
  for (std::size_t i = 0; i < inner.size(); ++i)
    low_rank_weight_gradients(tape, dy, x, weight.added[i], inner[i]);
}

Tensor linear_backward(Tape& tape, const Tensor& dy, const Tensor& x, const LinearWeight& weight,
                       bool want_dx) {
  const Tensor dy_low = dy.to(x.dtype());
  const LinearInputGradient back = linear_input_gradient(dy_low, weight, want_dx);
  linear_weight_gradients(tape, dy_low, x, weight, back.inner);
  return back.dx;
}

Tensor linear_forward(const Tensor& x, const LinearWeight& weight, DType out) {
  check(x, weight.w, out);
  const Tensor y({x.size(0), weight.w.size(0)}, out, x.device());
  multiply_into(x, weight, weight.values(), y);
  return y;
}

Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& weight, DType out) {
  const Tensor y = linear_forward(x, weight, out);
  tape.record(y, inputs_with({x}, weight), [x, weight, y](Tape& t) {
    t.accumulate(x, linear_backward(t, t.take(y), x, weight, t.wants_grad(x)));
  });
  add_bias(tape, y, weight.bias);
  return y;
}

Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w) {
  return linear(tape, x, w, x.dtype());
}

Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Tensor& bias, DType out) {
  LinearWeight with = w;
  with.bias = bias;
  return linear(tape, x, with, out);
}

}  // namespace vfm::ops
