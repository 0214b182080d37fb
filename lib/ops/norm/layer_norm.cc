// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/layer_norm.h"

#include "base/error.h"
#include "ops/norm/layer_norm_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon) {
  if (tape.recording()) fail("layer_norm has no gradient: it is for inference, without recording");
  if (x.dims() != 2) fail("layer_norm: x {} is not a matrix", to_string(x.shape()));
  const Shape row{x.size(1)};
  if (x.dtype() != DType::f32 || weight.dtype() != DType::f32 || bias.dtype() != DType::f32)
    fail("layer_norm of {}, weight {}, bias {}: all are f32", dtype_name(x.dtype()),
         dtype_name(weight.dtype()), dtype_name(bias.dtype()));
  if (weight.shape() != row || bias.shape() != row)
    fail("layer_norm: weight {} and bias {} do not fit x {}", to_string(weight.shape()),
         to_string(bias.shape()), to_string(x.shape()));
  if (weight.device() != x.device() || bias.device() != x.device())
    fail("layer_norm: x, weight and bias are on different devices");
  const Tensor y(x.shape(), DType::f32, x.device());
  LayerNormArgs args;
  args.rows = x.size(0), args.width = x.size(1);
  args.epsilon = epsilon;
  args.x = x.data<float>();
  args.weight = weight.data<float>();
  args.bias = bias.data<float>();
  args.y = y.data<float>();
  VFM_RUN(Touching(x, weight, bias, y), layer_norm_forward, args);
  return y;
}

}  // namespace vfm::ops
