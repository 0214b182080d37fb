// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/recompute_linear.h"

#include <utility>
#include <vector>

#include "ops/backward.h"
#include "ops/matmul/bias.h"

namespace vfm::ops {
namespace {

// Without recording and without the bias: linear(exchange(x), w).
Tensor product_of_gathered(const Tensor& x, const LinearWeight& w, const Exchange& exchange) {
  Tensor all;
  if (exchange.chunks) return multiply_gathered(x, w, exchange, all);
  Tape silent(false);
  return linear_forward(run_exchange(silent, x, exchange), w, x.dtype());
}

// Its backward, where x is computed again: the gradient of x.
Tensor backward_of_gathered(Tape& tape, const Tensor& dy, const Tensor& x, const LinearWeight& w,
                            const Exchange& exchange) {
  if (exchange.chunks) return gathered_backward(tape, dy, x, Tensor(), w, exchange, true);
  Tape again(false);
  const Tensor dx = linear_backward(tape, dy, run_exchange(again, x, exchange), w, true);
  return exchange ? exchange.adjoint(dx) : dx;
}

// A norm of `inputs`, and its backward pass, which takes the gradient of its result.
template <class Norm, class Backward>
Tensor normed_linear(Tape& tape, std::vector<Tensor> inputs, const LinearWeight& w,
                     const Exchange& exchange, const Norm& norm, const Backward& backward) {
  const auto normed = [norm, type = w.w.dtype()] { return norm().to(type); };
  const Tensor y = product_of_gathered(normed(), w, exchange);
  tape.record(y, inputs_with(std::move(inputs), w), [=](Tape& t) {
    backward(t, backward_of_gathered(t, t.take(y), normed(), w, exchange));
  });
  add_bias(tape, y, w.bias);
  return y;
}

}  // namespace

ModulatedLinear modulate_linear(Tape& tape, const ModulateInput& in, const LinearWeight& w,
                                const Exchange& exchange) {
  Tensor normed;
  const ModulateSaved saved = modulate_forward(in, normed);
  const Tensor y = product_of_gathered(normed, w, exchange);
  std::vector<Tensor> results{y};
  if (saved.stream.id() != in.x.id()) results.push_back(saved.stream);
  tape.record(std::move(results),
              inputs_with({in.x, in.branch, in.gate, in.extra, in.modulation}, w),
              [in, saved, w, y, exchange](Tape& t) {
                Tensor dnormed;
                if (const Tensor dy = t.take(y); dy.defined())
                  dnormed = backward_of_gathered(t, dy, modulate_recompute(in, saved), w, exchange);
                modulate_backward(t, in, saved, dnormed);
              });
  add_bias(tape, y, w.bias);
  return {saved.stream, y};
}

Tensor activated_linear(Tape& tape, const Tensor& x, const LinearWeight& w, ActivationKind kind,
                        const Exchange& sum) {
  if (sum.chunks) {
    const Tensor y = multiply_summed(activation_forward(x, kind), w, sum);
    tape.record(y, inputs_with({x}, w), [x, w, sum, kind, y](Tape& t) {
      SummedGradient back = summed_input_gradient(t.take(y).to(x.dtype()), w, sum, true);
      const Tensor hidden(x.shape(), x.dtype(), x.device());
      t.accumulate(x, activation_backward(x, std::move(back.dx), kind, hidden));
      linear_weight_gradients(t, back.dy, hidden, w, back.inner);
    });
    add_bias(tape, y, w.bias);
    return y;
  }
  const Tensor y = linear_forward(activation_forward(x, kind), w, x.dtype());
  tape.record(y, inputs_with({x}, w), [x, w, kind, y](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    const LinearInputGradient back = linear_input_gradient(dy, w, true);
    const Tensor hidden(x.shape(), x.dtype(), x.device());
    t.accumulate(x, activation_backward(x, back.dx, kind, hidden));
    linear_weight_gradients(t, dy, hidden, w, back.inner);
  });
  const Tensor result = run_exchange(tape, y, sum);
  add_bias(tape, result, w.bias);
  return result;
}

Tensor swiglu_linear(Tape& tape, const Tensor& x, const LinearWeight& w, DType out,
                     const Exchange& sum) {
  if (sum.chunks && out == x.dtype()) {
    const Tensor y = multiply_summed(swiglu_forward(x), w, sum);
    tape.record(y, inputs_with({x}, w), [x, w, sum, y](Tape& t) {
      const SummedGradient back = summed_input_gradient(t.take(y).to(x.dtype()), w, sum, true);
      linear_weight_gradients(t, back.dy, swiglu_forward(x), w, back.inner);
      t.accumulate(x, swiglu_backward(x, back.dx));
    });
    add_bias(tape, y, w.bias);
    return y;
  }
  const Tensor y = linear_forward(swiglu_forward(x), w, out);
  tape.record(y, inputs_with({x}, w), [x, w, y](Tape& t) {
    const Tensor dhidden = linear_backward(t, t.take(y), swiglu_forward(x), w, true);
    t.accumulate(x, swiglu_backward(x, dhidden));
  });
  const Tensor result = run_exchange(tape, y, sum);
  add_bias(tape, result, w.bias);
  return result;
}

Tensor rmsnorm_linear(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon,
                      const LinearWeight& w, const Exchange& exchange) {
  return normed_linear(
      tape, {x, weight}, w, exchange, [=] { return rmsnorm_forward(x, weight, epsilon); },
      [=](Tape& t, Tensor dy) { rmsnorm_backward(t, std::move(dy), x, weight, epsilon); });
}

Tensor layer_norm_linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         float epsilon, const LinearWeight& w, const Exchange& exchange) {
  return normed_linear(
      tape, {x, weight, bias}, w, exchange,
      [=] { return layer_norm_forward(x, weight, bias, epsilon); },
      [=](Tape& t, Tensor dy) { layer_norm_backward(t, std::move(dy), x, weight, bias, epsilon); });
}

}  // namespace vfm::ops
