// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.h"
#include "ops/loss/cross_entropy_kernels.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

namespace {

kernels::CrossEntropy call_of(const CrossEntropyArgs& args) {
  kernels::CrossEntropy call;
  call.tokens = args.tokens;
  call.vocabulary = args.vocabulary;
  call.first = args.first;
  call.z_loss = args.z_loss;
  call.scale = args.scale;
  call.logits = args.logits;
  call.targets = args.targets;
  call.losses = args.losses;
  call.part = args.part;
  call.parts = args.parts;
  call.shares = args.shares;
  return call;
}

}  // namespace

void cross_entropy_part(const CrossEntropyArgs& args) {
  check_gpu(kernels::cross_entropy_part(call_of(args), compute_stream()),
            "compute a share of the cross-entropy");
}

void cross_entropy(const CrossEntropyArgs& args) {
  check_gpu(kernels::cross_entropy(call_of(args), compute_stream()), "compute the cross-entropy");
}

}  // namespace vfm::ops::cuda
