// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm.h"
#include "ops/norm/layer_norm_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::layer_norm_forward(const LayerNormArgs& args) {
  kernels::LayerNorm call;
  call.tokens = args.rows;
  call.width = static_cast<int>(args.width);
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.weight = args.weight;
  call.bias = args.bias;
  call.y = args.y;
  check_gpu(kernels::layer_norm(call, compute_stream()), "run layer norm");
}

}  // namespace vfm::ops
