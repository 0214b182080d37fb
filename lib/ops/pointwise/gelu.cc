// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/gelu.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/pointwise/gelu_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor gelu_forward(const Tensor& x) {
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("gelu of {}", dtype_name(x.dtype()));
  Tensor y(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, y), gelu_forward, x.dtype(), x.raw(), y.raw(), x.elements());
  return y;
}

Tensor gelu_backward(const Tensor& x, const Tensor& dy, const Tensor& y) {
  const Tensor dx = dy.unique() ? dy : Tensor(x.shape(), x.dtype(), x.device());
  VFM_RUN(Touching(x, dy, dx, y), gelu_backward, x.dtype(), x.raw(), dy.raw(), dx.raw(), y.raw(),
          x.elements());
  return dx;
}

Tensor gelu(Tape& tape, const Tensor& x) {
  const Tensor y = gelu_forward(x);
  tape.record(y, {x}, [x, y](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    t.accumulate(x, gelu_backward(x, dy));
  });
  return y;
}

}  // namespace vfm::ops
