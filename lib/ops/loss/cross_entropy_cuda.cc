// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.h"
#include "ops/loss/cross_entropy_kernels.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

void cross_entropy(const CrossEntropyArgs& args) {
  kernels::CrossEntropy call;
  call.tokens = args.tokens;
  call.vocabulary = args.vocabulary;
  call.z_loss = args.z_loss;
  call.scale = args.scale;
  call.logits = args.logits;
  call.targets = args.targets;
  call.losses = args.losses;
  check_gpu(kernels::cross_entropy(call, compute_stream()), "compute the cross-entropy");
}

}  // namespace vfm::ops::cuda
