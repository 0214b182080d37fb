// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/silu.h"

#include "base/error.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

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

}  // namespace vfm::ops
