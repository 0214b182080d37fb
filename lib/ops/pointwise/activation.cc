// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/activation.h"

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

}  // namespace vfm::ops
