// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/add.h"

#include "base/error.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

namespace {

bool can_be_added(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16;
}

}  // namespace

void add_in_place(const Tensor& target, const Tensor& term) {
  if (target.elements() != term.elements())
    fail("cannot add shape {} to shape {}", to_string(term.shape()), to_string(target.shape()));
  if (target.device() != term.device())
    fail("cannot add a tensor on {} to one on {}", device_name(term.device()),
         device_name(target.device()));
  if (!can_be_added(target.dtype()) || !can_be_added(term.dtype()))
    fail("cannot add {} to {}", dtype_name(term.dtype()), dtype_name(target.dtype()));
  VFM_RUN(Touching(target, target, term), add_into, target.dtype(), target.raw(), term.dtype(),
          term.raw(), target.elements());
}

void add_in_order(const Tensor& own, int place, const Tensor& others) {
  const std::int64_t count = others.size(0);
  if (own.dtype() != others.dtype() || own.device() != others.device() ||
      !can_be_added(own.dtype()) || others.elements() != count * own.elements() || place < 0 ||
      place > count)
    fail("cannot add {} {} to {} {} as number {}", dtype_name(others.dtype()),
         to_string(others.shape()), dtype_name(own.dtype()), to_string(own.shape()), place);
  if (own.elements() == 0) return;
  VFM_RUN(Touching(own, own, others), add_in_order, own.dtype(), own.raw(), place, others.raw(),
          static_cast<int>(count) + 1, own.elements());
}

Tensor add(Tape& tape, const Tensor& a, const Tensor& b) {
  if (a.dims() != 2 || b.dims() != 2 || a.size(0) != b.size(0) || a.size(1) > b.size(1) ||
      a.dtype() != DType::f32 || b.dtype() != DType::f32)
    fail("cannot add {} {} and {} {}", dtype_name(a.dtype()), to_string(a.shape()),
         dtype_name(b.dtype()), to_string(b.shape()));
  const std::int64_t rows = a.size(0), narrow = a.size(1), wide = b.size(1);
  Tensor sum(a.shape(), DType::f32, a.device());
  VFM_RUN(Touching(a, sum, sum), add_columns, a.data<float>(), b.data<float>(), sum.data<float>(),
          rows, narrow, wide);
  tape.record(sum, {a, b}, [a, b, sum, rows, narrow, wide](Tape& t) {
    const Tensor gradient = t.take(sum).to(DType::f32);
    t.accumulate(a, gradient);
    if (narrow == wide) return t.accumulate(b, gradient);
    const Tensor db(b.shape(), DType::f32, b.device());
    VFM_RUN(Touching(gradient, db), add_columns_backward, gradient.data<float>(), db.data<float>(),
            rows, narrow, wide);
    t.accumulate(b, db);
  });
  return sum;
}

}  // namespace vfm::ops
