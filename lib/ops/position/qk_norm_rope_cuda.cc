// SPDX-License-Identifier: Apache-2.0
#include "kernels/qk_norm_rope.h"
#include "ops/position/qk_norm_rope_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {
namespace {

void describe_qk(const QkNormRopeArgs& args, kernels::QkNormRope& call) {
  call.tokens = args.tokens;
  call.query_heads = args.query_heads;
  call.key_heads = args.key_heads;
  call.value_heads = args.value_heads;
  call.head_dim = args.head_dim;
  call.type = kernel_type(args.type);
  call.epsilon = args.epsilon;
  call.query_weight = args.query_weight;
  call.key_weight = args.key_weight;
  call.cosines = args.cosines;
  call.sines = args.sines;
  call.pairs = args.pairs;
}

}  // namespace

void cuda::qk_norm_rope_forward(const QkNormRopeArgs& args) {
  kernels::QkNormRopeForward call;
  describe_qk(args, call);
  call.x = args.x;
  call.y = args.y;
  call.values = args.values;
  check_gpu(kernels::qk_norm_rope_forward(call, compute_stream()), "run qk_norm_rope");
}

void cuda::qk_norm_rope_gradients(const QkNormRopeArgs& args, const Tensor& query,
                                  const Tensor& key) {
  kernels::QkNormRopeBackward call;
  describe_qk(args, call);
  call.x = args.x;
  call.dy = args.dy;
  call.dx = args.y;
  if (query.defined()) call.query_dweight = query.data<float>();
  if (key.defined()) call.key_dweight = key.data<float>();
  const Tensor partial({kernels::qk_norm_rope_partials(call)}, DType::f32, Device::cuda);
  call.partial = partial.data<float>();
  check_gpu(kernels::qk_norm_rope_backward(call, compute_stream()), "run qk_norm_rope backward");
}

}  // namespace vfm::ops
