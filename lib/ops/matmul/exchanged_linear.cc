// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/exchanged_linear.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/matmul/bias.h"
#include "ops/matmul/linear.h"
#include "ops/row_chunks.h"

namespace vfm::ops {
namespace {

void check_product(const Tensor& x, const LinearWeight& w) {
  if (x.dims() != 2 || w.w.dims() != 2 || x.size(1) != w.w.size(1) || x.dtype() != w.w.dtype() ||
      x.device() != w.w.device())
    fail("a linear layer in parts: x {} {} does not fit w {} {}", dtype_name(x.dtype()),
         to_string(x.shape()), dtype_name(w.w.dtype()), to_string(w.w.shape()));
}

// What adapters' gradients need of dy; that it was computed before, part by part, is a part R / O
// of the product's work.
std::vector<Tensor> inner_of(const Tensor& dy, const LinearWeight& w) {
  std::vector<Tensor> inner;
  for (const LowRank& added : w.added)
    inner.push_back(low_rank_input_gradient(dy, added, Tensor()));
  return inner;
}

}  // namespace

Tensor multiply_gathered(const Tensor& x, const LinearWeight& w, const Exchange& gather,
                         Tensor& all) {
  check_product(x, w);
  const std::unique_ptr<ComingRows> coming = gather.chunks->gather(x);
  all = coming->rows();
  const Tensor y({all.size(0), w.w.size(0)}, x.dtype(), x.device());
  const Tensor values = w.values();
  while (const auto rows = coming->next())
    multiply_into(all.rows(rows->begin, rows->end), w, values, y.rows(rows->begin, rows->end));
  return y;
}

Tensor gathered_backward(Tape& tape, const Tensor& dy, const Tensor& own, const Tensor& all,
                         const LinearWeight& w, const Exchange& gather, bool want_dx) {
  const Tensor dy_low = dy.to(w.w.dtype());
  std::unique_ptr<ComingRows> coming;
  if (!all.defined()) coming = gather.chunks->gather(own);
  Tensor values;
  const auto weight_gradients = [&] {
    values = Tensor();
    linear_weight_gradients(tape, dy_low, coming ? coming->wait() : all, w, inner_of(dy_low, w));
  };
  if (!want_dx) {
    weight_gradients();
    return {};
  }
  values = w.values();
  const auto make = [&](RowRange rows, const Tensor& into) {
    input_gradient_into(dy_low.rows(rows.begin, rows.end), w, values, into);
  };
  return gather.chunks->sum(w.w.size(1), dy_low.dtype(), dy_low.device(), make, weight_gradients);
}

Tensor multiply_summed(const Tensor& x, const LinearWeight& w, const Exchange& sum) {
  check_product(x, w);
  const Tensor values = w.values();
  return sum.chunks->sum(w.w.size(0), x.dtype(), x.device(),
                         [&](RowRange rows, const Tensor& into) {
                           multiply_into(x.rows(rows.begin, rows.end), w, values, into);
                         });
}

SummedGradient summed_input_gradient(const Tensor& dy, const LinearWeight& w, const Exchange& sum,
                                     bool want_dx) {
  const std::unique_ptr<ComingRows> coming = sum.chunks->gather(dy);
  SummedGradient back;
  back.dy = coming->rows();
  if (want_dx) {
    back.dx = Tensor({back.dy.size(0), w.w.size(1)}, dy.dtype(), dy.device());
    const Tensor values = w.values();
    while (const auto rows = coming->next())
      input_gradient_into(back.dy.rows(rows->begin, rows->end), w, values,
                          back.dx.rows(rows->begin, rows->end));
  }
  coming->wait();
  back.inner = inner_of(back.dy, w);
  return back;
}

Tensor gathered_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& gather) {
  if (!gather.chunks) return linear(tape, run_exchange(tape, x, gather), w);
  Tensor all;
  const Tensor y = multiply_gathered(x, w, gather, all);
  tape.record(y, inputs_with({x}, w), [x, w, gather, all, y](Tape& t) {
    const bool want_dx = t.wants_grad(x);
    t.accumulate(x, gathered_backward(t, t.take(y), x, all, w, gather, want_dx));
  });
  add_bias(tape, y, w.bias);
  return y;
}

Tensor summed_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& sum,
                     DType out) {
  if (!sum.chunks || out != x.dtype()) {
    const Tensor y = run_exchange(tape, linear(tape, x, w, Tensor(), out), sum);
    add_bias(tape, y, w.bias);
    return y;
  }
  const Tensor y = multiply_summed(x, w, sum);
  tape.record(y, inputs_with({x}, w), [x, w, sum, y](Tape& t) {
    SummedGradient back = summed_input_gradient(t.take(y).to(x.dtype()), w, sum, t.wants_grad(x));
    linear_weight_gradients(t, back.dy, x, w, back.inner);
    t.accumulate(x, std::move(back.dx));
  });
  add_bias(tape, y, w.bias);
  return y;
}

}  // namespace vfm::ops
