// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/cast.h"

namespace vfm::ops {

Tensor cast(Tape& tape, const Tensor& x, DType dtype) {
  const Tensor y = x.to(dtype);
  if (y.id() == x.id()) return x;
  tape.record(y, {x}, [x, y](Tape& t) { t.accumulate(x, t.take(y).to(DType::f32)); });
  return y;
}

}  // namespace vfm::ops
