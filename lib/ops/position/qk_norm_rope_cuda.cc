// SPDX-License-Identifier: Apache-2.0
#include "ops/position/qk_norm_rope_cuda.h"

#include "kernels/qk_norm_rope.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

void describe(const QkNormRopeArgs& args, kernels::QkNormRope& call) {
  call.tokens = args.tokens;
  call.query_heads = args.query_heads;
  call.key_heads = args.key_heads;
  call.value_heads = args.value_heads;
  call.head_dim = args.head_dim;
  call.type = args.low ? kernels::Type::bf16 : kernels::Type::f32;
  call.epsilon = args.epsilon;
  call.query_weight = args.query_weight;
  call.key_weight = args.key_weight;
  call.cosines = args.cosines;
  call.sines = args.sines;
}

}  // namespace

void cuda::qk_norm_rope_forward(const QkNormRopeArgs& args) {
  kernels::QkNormRopeForward call;
  describe(args, call);
  call.x = args.x;
  call.y = args.y;
  check_gpu(kernels::qk_norm_rope_forward(call, compute_stream()), "run qk_norm_rope");
}

void qk_norm_rope_backward_cuda(const QkNormRopeArgs& args, const Tensor& query_gradient,
                                const Tensor& key_gradient) {
  kernels::QkNormRopeBackward call;
  describe(args, call);
  call.x = args.x;
  call.dy = args.dy;
  call.dx = args.y;
  if (query_gradient.defined()) call.query_dweight = query_gradient.data<float>();
  if (key_gradient.defined()) call.key_dweight = key_gradient.data<float>();
  const Tensor partial({kernels::qk_norm_rope_partials(call)}, DType::f32, Device::cuda);
  call.partial = partial.data<float>();
  check_gpu(kernels::qk_norm_rope_backward(call, compute_stream()), "run qk_norm_rope backward");
}

}  // namespace vfm::ops
