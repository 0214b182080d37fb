// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/add_bias.h"

#include "base/error.h"
#include "ops/pointwise/add_bias_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

void add_bias(const Tensor& y, std::int64_t first, const Tensor& bias) {
  if (y.dims() != 2 || bias.dims() != 1 || y.dtype() != DType::f32 || bias.dtype() != DType::f32 ||
      y.device() != bias.device() || first < 0 || first + bias.size(0) > y.size(1))
    fail("a bias {} {} does not fit {} {} from column {} on", dtype_name(bias.dtype()),
         to_string(bias.shape()), dtype_name(y.dtype()), to_string(y.shape()), first);
  const Touching work = Touching(bias).columns(y, bias.size(0)).columns(y, bias.size(0));
  VFM_RUN(work, add_bias, y.data<float>() + first, y.size(0), y.size(1), bias.data<float>(),
          bias.size(0));
}

}  // namespace vfm::ops
