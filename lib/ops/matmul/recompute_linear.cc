// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/recompute_linear.h"

#include "ops/backward.h"
#include "ops/matmul/linear.h"

namespace vfm::ops {

ModulatedLinear modulate_linear(Tape& tape, const ModulateInput& in, const LinearWeight& w,
                                const Exchange& exchange) {
  Tape silent(false);
  Tensor normed;
  const ModulateSaved saved = modulate_forward(in, normed);
  const Tensor y = linear(silent, run_exchange(silent, normed, exchange), w);
  std::vector<Tensor> results{y};
  if (saved.stream.id() != in.x.id()) results.push_back(saved.stream);
  tape.record(std::move(results),
              inputs_with({in.x, in.branch, in.gate, in.extra, in.modulation}, w),
              [in, saved, w, y, exchange](Tape& t) {
                Tensor dnormed;
                if (const Tensor dy = t.take(y); dy.defined()) {
                  Tape again(false);
                  const Tensor x = run_exchange(again, modulate_recompute(in, saved), exchange);
                  dnormed = linear_backward(t, dy, x, w, true);
                  if (exchange) dnormed = exchange.adjoint(dnormed);
                }
                modulate_backward(t, in, saved, dnormed);
              });
  return {saved.stream, y};
}

Tensor gelu_linear(Tape& tape, const Tensor& x, const LinearWeight& w) {
  Tape silent(false);
  const Tensor y = linear(silent, gelu_forward(x), w);
  tape.record(y, inputs_with({x}, w), [x, w, y](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    const LinearInputGradient back = linear_input_gradient(dy, w, true);
    const Tensor hidden(x.shape(), x.dtype(), x.device());
    t.accumulate(x, gelu_backward(x, back.dx, hidden));
    linear_weight_gradients(t, dy, hidden, w, back.inner);
  });
  return y;
}

Tensor swiglu_linear(Tape& tape, const Tensor& x, const LinearWeight& w, DType out) {
  Tape silent(false);
  const Tensor y = linear(silent, swiglu_forward(x), w, Tensor(), out);
  tape.record(y, inputs_with({x}, w), [x, w, y](Tape& t) {
    const Tensor dhidden = linear_backward(t, t.take(y), swiglu_forward(x), w, true);
    t.accumulate(x, swiglu_backward(x, dhidden));
  });
  return y;
}

Tensor rmsnorm_linear(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon,
                      const LinearWeight& w, const Exchange& exchange) {
  const auto normed = [=](Tape& t) {
    return run_exchange(t, rmsnorm_forward(x, weight, epsilon).to(w.w.dtype()), exchange);
  };
  Tape silent(false);
  const Tensor y = linear(silent, normed(silent), w);
  tape.record(y, inputs_with({x, weight}, w), [=](Tape& t) {
    Tape again(false);
    Tensor dnormed = linear_backward(t, t.take(y), normed(again), w, true);
    if (exchange) dnormed = exchange.adjoint(dnormed);
    rmsnorm_backward(t, std::move(dnormed), x, weight, epsilon);
  });
  return y;
}

}  // namespace vfm::ops
