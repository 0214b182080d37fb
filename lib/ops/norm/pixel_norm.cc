// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/pixel_norm.h"

#include "base/error.h"
#include "ops/norm/norm_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

void pixel_norm(const Tensor& x, const Tensor& weight, bool silu, const Tensor& y) {
  const bool fits = x.dims() >= 1 && x.shape() == y.shape() && x.dtype() == y.dtype() &&
                    x.device() == y.device() && weight.dtype() == DType::f32 &&
                    weight.device() == x.device() && weight.elements() == x.size(-1) &&
                    (x.dtype() == DType::f32 || x.dtype() == DType::bf16);
  if (!fits)
    fail("pixel_norm: x {} {}, weight {} and y {} {} do not fit each other", dtype_name(x.dtype()),
         to_string(x.shape()), to_string(weight.shape()), dtype_name(y.dtype()),
         to_string(y.shape()));
  if (x.elements() == 0) return;
  PixelNormArgs args;
  args.channels = x.size(-1), args.pixels = x.elements() / args.channels;
  args.type = x.dtype();
  args.silu = silu;
  args.x = x.raw(), args.weight = weight.data<float>(), args.y = y.raw();
  VFM_RUN(Touching(x, weight, y), pixel_norm, args);
}

}  // namespace vfm::ops
