// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/scaled_sum.h"

#include "base/error.h"
#include "ops/optim/optim_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

bool is_summed(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

}  // namespace

void scaled_sum(const Tensor& out, float a, const Tensor& x, float b, const Tensor& y) {
  const bool fits = is_summed(out.dtype()) && is_summed(x.dtype()) && is_summed(y.dtype()) &&
                    (x.dtype() == DType::f32 || y.dtype() == DType::f32) &&
                    out.elements() == x.elements() && out.elements() == y.elements() &&
                    out.device() == x.device() && out.device() == y.device();
  if (!fits)
    fail("a sum of {} {} and {} {} into {} {}", dtype_name(x.dtype()), to_string(x.shape()),
         dtype_name(y.dtype()), to_string(y.shape()), dtype_name(out.dtype()),
         to_string(out.shape()));
  const auto array = [](const Tensor& tensor) { return TypedArray{tensor.dtype(), tensor.raw()}; };
  VFM_RUN(Touching(out, x, y), scaled_sum, array(out), a, array(x), b, array(y), out.elements());
}

}  // namespace vfm::ops
