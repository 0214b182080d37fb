// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/few_rows.h"

#include "base/error.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor few_rows(const Tensor& x, const Tensor& w, const Tensor& scales, const Tensor& bias) {
  const auto of_outputs = [&](const Tensor& vector) {
    return !vector.defined() ||
           (vector.dtype() == DType::f32 && vector.shape() == Shape{w.size(0)});
  };
  const bool type = w.dtype() == DType::f32 || w.dtype() == DType::bf16 ||
                    (w.dtype() == DType::f16 && layout_device(w.device()) == Device::cpu) ||
                    (w.dtype() == DType::u8 && scales.defined());
  if (x.dims() != 2 || w.dims() != 2 || x.size(1) != w.size(1) || x.dtype() != DType::f32 ||
      !type || !of_outputs(scales) || !of_outputs(bias) || x.device() != w.device())
    fail("few_rows: no product of {} {} and {} {}", dtype_name(x.dtype()), to_string(x.shape()),
         dtype_name(w.dtype()), to_string(w.shape()));
  const Tensor y({x.size(0), w.size(0)}, DType::f32, x.device());
  const auto floats = [](const Tensor& vector) {
    return vector.defined() ? vector.data<float>() : nullptr;
  };
  const auto rows = [](const Tensor& of) { return static_cast<double>(of.size(0)); };
  VFM_RUN(Touching(x, w, y)
              .kind(WorkKind::products, w.dtype())
              .products(rows(x), rows(w), static_cast<double>(x.size(1))),
          few_rows,
          FewRowsArgs{x.data<float>(), w.raw(), w.dtype(), floats(scales), floats(bias),
                      y.data<float>(), x.size(0), x.size(1), w.size(0)});
  return y;
}

}  // namespace vfm::ops
