// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/gelu.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor gelu_forward(const Tensor& x, Gelu kind) {
  if (kind == Gelu::quick) fail("quick gelu has no gradient: use gelu_in_place for inference");
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("gelu of {}", dtype_name(x.dtype()));
  Tensor y(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, y), gelu_forward, x.dtype(), kind, x.raw(), y.raw(), x.elements());
  return y;
}

Tensor gelu_backward(const Tensor& x, const Tensor& dy, Gelu kind, const Tensor& y) {
  const Tensor dx = dy.unique() ? dy : Tensor(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, dy, dx, y), gelu_backward, x.dtype(), kind, x.raw(), dy.raw(), dx.raw(),
          y.raw(), x.elements());
  return dx;
}

Tensor gelu(Tape& tape, const Tensor& x, Gelu kind) {
  const Tensor y = gelu_forward(x, kind);
  tape.record(y, {x}, [x, kind, y](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    t.accumulate(x, gelu_backward(x, dy, kind));
  });
  return y;
}

}  // namespace vfm::ops
