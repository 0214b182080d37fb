// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/activations.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor activation_forward(const Tensor& x, ActivationKind kind) {
  if (kind == ActivationKind::quick_gelu)
    fail("quick gelu has no gradient: use activate_in_place for inference");
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("an activation of {}", dtype_name(x.dtype()));
  Tensor y(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, y), activation_forward, x.dtype(), kind, x.raw(), y.raw(), x.elements());
  return y;
}

Tensor activation_backward(const Tensor& x, const Tensor& dy, ActivationKind kind,
                           const Tensor& y) {
  const Tensor dx = dy.unique() ? dy : Tensor(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, dy, dx, y), activation_backward, x.dtype(), kind, x.raw(), dy.raw(), dx.raw(),
          y.raw(), x.elements());
  return dx;
}

Tensor activate(Tape& tape, const Tensor& x, ActivationKind kind) {
  const Tensor y = activation_forward(x, kind);
  tape.record(y, {x}, [x, kind, y](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    t.accumulate(x, activation_backward(x, dy, kind));
  });
  return y;
}

Tensor silu(Tape& tape, const Tensor& x) {
  if (x.dtype() != DType::f32) fail("silu of {}", dtype_name(x.dtype()));
  Tensor y(x.shape(), DType::f32, x.device());
  VFM_RUN(Touching(x, y), silu_forward, x.data<float>(), y.data<float>(), x.elements());
  tape.record(y, {x}, [x, y](Tape& t) {
    const Tensor dy = t.take(y);
    Tensor dx(x.shape(), DType::f32, x.device());
    VFM_RUN(Touching(x, dy, dx), silu_backward, x.data<float>(), dy.data<float>(), dx.data<float>(),
            x.elements());
    t.accumulate(x, dx);
  });
  return y;
}

Tensor swiglu_forward(const Tensor& x) {
  if (x.dims() != 2 || x.size(1) % 2 != 0 || (x.dtype() != DType::f32 && x.dtype() != DType::bf16))
    fail("swiglu of {} {}", dtype_name(x.dtype()), to_string(x.shape()));
  const std::int64_t rows = x.size(0), width = x.size(1) / 2;
  Tensor y({rows, width}, x.dtype(), x.device());
  VFM_RUN(Touching(x, y), swiglu_forward, x.dtype(), x.raw(), y.raw(), rows, width);
  return y;
}

Tensor swiglu_backward(const Tensor& x, const Tensor& dy) {
  const std::int64_t rows = x.size(0), width = x.size(1) / 2;
  Tensor dx(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, dy, dx), swiglu_backward, x.dtype(), x.raw(), dy.raw(), dx.raw(), rows,
          width);
  return dx;
}

Tensor swiglu(Tape& tape, const Tensor& x) {
  const Tensor y = swiglu_forward(x);
  tape.record(y, {x},
              [x, y](Tape& t) { t.accumulate(x, swiglu_backward(x, t.take(y).to(x.dtype()))); });
  return y;
}

namespace {

void check(const Tape& tape, const Tensor& x, const char* name) {
  if (tape.recording()) fail("{} has no gradient: it is for inference, without recording", name);
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("{} of {}", name, dtype_name(x.dtype()));
}

}  // namespace

void relu_in_place(Tape& tape, const Tensor& x) {
  check(tape, x, "relu in place");
  VFM_RUN(Touching(x, x), relu, x.dtype(), x.raw(), x.elements());
}

void activate_in_place(Tape& tape, const Tensor& x, ActivationKind kind) {
  check(tape, x, "an activation in place");
  VFM_RUN(Touching(x, x), activation_forward, x.dtype(), kind, x.raw(), x.raw(), x.elements());
}

void gated_gelu_in_place(Tape& tape, const Tensor& x, const Tensor& factor) {
  check(tape, x, "gated gelu in place");
  if (factor.dtype() != x.dtype() || factor.device() != x.device() ||
      factor.elements() != x.elements())
    fail("gated gelu: {} {} does not fit {} {}", dtype_name(factor.dtype()),
         to_string(factor.shape()), dtype_name(x.dtype()), to_string(x.shape()));
  VFM_RUN(Touching(x, x, factor), gated_gelu, x.dtype(), x.raw(), factor.raw(), x.elements());
}

}  // namespace vfm::ops
