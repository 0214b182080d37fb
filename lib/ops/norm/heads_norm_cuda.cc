// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads_norm.h"
#include "ops/norm/heads_norm_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {
namespace {

void describe_heads_norm(const HeadsNormArgs& args, kernels::HeadsNorm& call) {
  call.tokens = args.tokens, call.width = args.width, call.stride = args.stride;
  call.all = args.all;
  call.step = args.step;
  call.type = kernel_type(args.type);
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.weight = args.weight;
}

kernels::HeadsNormBackward heads_norm_back(const HeadsNormArgs& args) {
  kernels::HeadsNormBackward call;
  describe_heads_norm(args, call);
  call.sums = args.sums;
  call.dy = args.dy;
  call.products = args.products;
  call.dx = args.dx;
  call.dweight = args.dweight;
  call.partial = args.partial;
  return call;
}

}  // namespace

void cuda::heads_norm_forward(const HeadsNormArgs& args) {
  kernels::HeadsNormForward call;
  describe_heads_norm(args, call);
  call.sums = args.sums;
  call.summed = args.summed;
  call.y = args.y;
  check_gpu(kernels::heads_norm_forward(call, compute_stream()), "run heads_norm");
}

void cuda::heads_norm_products(const HeadsNormArgs& args) {
  check_gpu(kernels::heads_norm_products(heads_norm_back(args), compute_stream()),
            "run heads_norm's products");
}

void cuda::heads_norm_gradients(const HeadsNormArgs& args) {
  static_assert(kHeadsNormChunk == kernels::kHeadsNormChunk);
  check_gpu(kernels::heads_norm_gradients(heads_norm_back(args), compute_stream()),
            "run heads_norm backward");
}

}  // namespace vfm::ops
