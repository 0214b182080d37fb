// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/linear.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/matmul/gemm.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

void check(const Tensor& x, const Tensor& w, const Tensor& bias, DType out) {
  const bool fits = x.dims() == 2 && w.dims() == 2 && x.size(1) == w.size(1) &&
                    (!bias.defined() || (bias.dims() == 1 && bias.size(0) == w.size(0)));
  if (!fits) fail("linear: x {} does not fit w {}", to_string(x.shape()), to_string(w.shape()));
  if (x.dtype() != w.dtype() || (x.dtype() != DType::f32 && x.dtype() != DType::bf16) ||
      (out != DType::f32 && out != x.dtype()) || (bias.defined() && bias.dtype() != DType::f32))
    fail("linear: no product of {} and {} into {}", dtype_name(x.dtype()), dtype_name(w.dtype()),
         dtype_name(out));
  if (x.device() != w.device())
    fail("linear: x is on {}, w on {}", device_name(x.device()), device_name(w.device()));
}

void add_bias(const Tensor& y, const Tensor& bias) {
  for (std::int64_t i = 0; i < y.size(0); ++i)
    add_in_place(y.rows(i, i + 1), bias);
}

Tensor sum_rows(const Tensor& dy) {
  Tensor sum = Tensor::zeros({dy.size(1)}, DType::f32, dy.device());
  for (std::int64_t i = 0; i < dy.size(0); ++i)
    add_in_place(sum, dy.rows(i, i + 1));
  return sum;
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

Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& weight, const Tensor& bias,
              DType out) {
  const Tensor& w = weight.w;
  check(x, w, bias, out);
  Tensor y({x.size(0), w.size(0)}, out, x.device());
  multiply_into(x, weight, weight.values(), y);
  if (bias.defined()) add_bias(y, bias);
  tape.record(y, inputs_with({x, bias}, weight), [x, weight, bias, y](Tape& t) {
    const Tensor dy = t.take(y);
    if (t.wants_grad(bias)) t.accumulate(bias, sum_rows(dy));
    t.accumulate(x, linear_backward(t, dy, x, weight, t.wants_grad(x)));
  });
  return y;
}

Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w) {
  return linear(tape, x, w, Tensor(), x.dtype());
}

}  // namespace vfm::ops
