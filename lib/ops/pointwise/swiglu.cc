// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/swiglu.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

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

}  // namespace vfm::ops
