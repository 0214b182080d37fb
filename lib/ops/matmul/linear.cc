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

Tensor linear_backward(Tape& tape, const Tensor& dy, const Tensor& x, const LinearWeight& weight,
                       bool want_dx) {
  const Tensor& w = weight.w;
  const std::int64_t n = x.size(0), in = x.size(1), out = w.size(0);
  const Tensor dy_low = dy.to(x.dtype());
  const Matrix dy_matrix{dy_low.raw(), dy_low.dtype(), out, false};
  if (tape.wants_grad(w)) {
    Tensor dw = tape.leaf_gradient(w);
    const bool add = dw.defined();
    if (!add) dw = Tensor(w.shape(), DType::f32, w.device());
    gemm(dw.device(), out, in, n, {dy_low.raw(), dy_low.dtype(), out, true},
         {x.raw(), x.dtype(), in, false}, dw.raw(), DType::f32, in, add);
    if (!add) tape.accumulate(w, dw);
  }
  Tensor dx;
  if (want_dx) {
    dx = Tensor({n, in}, x.dtype(), x.device());
    gemm(dx.device(), n, in, out, dy_matrix, {w.raw(), w.dtype(), in, false}, dx.raw(), dx.dtype(),
         in, false);
  }
  for (const LowRank& added : weight.added)
    low_rank_backward(tape, dy_low, x, added, dx);
  return dx;
}

Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& weight, const Tensor& bias,
              DType out) {
  const Tensor& w = weight.w;
  check(x, w, bias, out);
  const std::int64_t n = x.size(0), in = x.size(1), wide = w.size(0);
  Tensor y({n, wide}, out, x.device());
  gemm(y.device(), n, wide, in, {x.raw(), x.dtype(), in, false}, {w.raw(), w.dtype(), in, true},
       y.raw(), out, wide, false);
  for (const LowRank& added : weight.added)
    add_low_rank(y, x, added);
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
