// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu.h"

#include "base/error.h"
#include "ops/elementwise_cpu.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor gelu(Tape& tape, const Tensor& x) {
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("gelu of {}", dtype_name(x.dtype()));
  const bool f32 = x.dtype() == DType::f32;
  Tensor y(x.shape(), x.dtype(), x.device());
  if (f32) {
    VFM_RUN(x.device(), gelu_forward, x.data<float>(), y.data<float>(), x.elements());
  } else {
    VFM_RUN(x.device(), gelu_forward, x.data<std::uint16_t>(), y.data<std::uint16_t>(),
            x.elements());
  }
  tape.record(y, {x}, [x, y, f32](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    const Tensor dx = dy.unique() ? dy : Tensor(x.shape(), x.dtype(), x.device());
    if (f32) {
      VFM_RUN(x.device(), gelu_backward, x.data<float>(), dy.data<float>(), dx.data<float>(),
              x.elements());
    } else {
      VFM_RUN(x.device(), gelu_backward, x.data<std::uint16_t>(), dy.data<std::uint16_t>(),
              dx.data<std::uint16_t>(), x.elements());
    }
    t.accumulate(x, dx);
  });
  return y;
}

}  // namespace vfm::ops
