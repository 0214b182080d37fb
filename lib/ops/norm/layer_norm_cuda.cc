// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm.h"
#include "ops/norm/layer_norm_kernels.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

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

void cuda::layer_norm_backward(const LayerNormArgs& args) {
  static_assert(kLayerNormChunk == kernels::kLayerNormChunk);
  static_assert(kLayerNormNumbers == kernels::kLayerNormNumbers);
  kernels::LayerNormBackward call;
  call.tokens = args.rows;
  call.width = static_cast<int>(args.width);
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.weight = args.weight;
  call.dy = args.dy;
  call.dx = args.dx;
  call.dboth = args.dboth;
  call.partial = args.partial;
  const Tensor numbers({args.rows, kLayerNormNumbers}, DType::f32, Device::cuda);
  call.numbers = numbers.data<float>();
  check_gpu(kernels::layer_norm_backward(call, compute_stream()), "run layer norm backward");
}

}  // namespace vfm::ops
