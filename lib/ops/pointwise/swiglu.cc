// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/swiglu.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/pointwise/elementwise_cpu.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor swiglu_forward(const Tensor& x) {
  if (x.dims() != 2 || x.size(1) % 2 != 0 || (x.dtype() != DType::f32 && x.dtype() != DType::bf16))
    fail("swiglu of {} {}", dtype_name(x.dtype()), to_string(x.shape()));
  const std::int64_t rows = x.size(0), width = x.size(1) / 2;
  Tensor y({rows, width}, x.dtype(), x.device());
  if (x.dtype() == DType::f32) {
    VFM_RUN(x.device(), swiglu_forward, x.data<float>(), y.data<float>(), rows, width);
  } else {
    VFM_RUN(x.device(), swiglu_forward, x.data<std::uint16_t>(), y.data<std::uint16_t>(), rows,
            width);
  }
  return y;
}

Tensor swiglu_backward(const Tensor& x, const Tensor& dy) {
  const std::int64_t rows = x.size(0), width = x.size(1) / 2;
  Tensor dx(x.shape(), x.dtype(), x.device());
  if (x.dtype() == DType::f32) {
    VFM_RUN(x.device(), swiglu_backward, x.data<float>(), dy.data<float>(), dx.data<float>(), rows,
            width);
  } else {
    VFM_RUN(x.device(), swiglu_backward, x.data<std::uint16_t>(), dy.data<std::uint16_t>(),
            dx.data<std::uint16_t>(), rows, width);
  }
  return dx;
}

Tensor swiglu(Tape& tape, const Tensor& x) {
  const Tensor y = swiglu_forward(x);
  tape.record(y, {x},
              [x, y](Tape& t) { t.accumulate(x, swiglu_backward(x, t.take(y).to(x.dtype()))); });
  return y;
}

}  // namespace vfm::ops
