// In place of cudnn_cuda.cc, attention_cudnn_cuda.cc, attention_fp8_cudnn_cuda.cc and
// conv2d_cudnn_cuda.cc in a build without cuDNN's headers.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "ops/attention/attention_cudnn_cuda.h"
#include "ops/attention/attention_fp8_cudnn_cuda.h"
#include "ops/conv/conv2d_cudnn_cuda.h"
#include "ops/cudnn/cudnn_cuda.h"

namespace vfm::ops {

struct CudnnPack {};

std::string why_no_cudnn() {
  return "vfm was built without cuDNN; build it where cudnn.h is beside CUDA's headers";
}

bool cudnn_takes_empty_samples() {
  return false;
}

std::string describe_cudnn() {
  return why_no_cudnn();
}

std::shared_ptr<CudnnPack> cudnn_pack() {
  return std::make_shared<CudnnPack>();
}

void attention_forward_cudnn(const AttentionArgs&, CudnnPack&) {
  fail("{}", why_no_cudnn());
}

void attention_backward_cudnn(const AttentionArgs&, CudnnPack&) {
  fail("{}", why_no_cudnn());
}

std::string why_no_cudnn_fp8() {
  return why_no_cudnn();
}

bool cudnn_fp8_writes_bf16() {
  return false;
}

void attention_fp8_cudnn(const Fp8CudnnCall&) {
  fail("{}", why_no_cudnn());
}

void conv2d_cudnn(const ConvCall&) {
  fail("{}", why_no_cudnn());
}

}  // namespace vfm::ops
