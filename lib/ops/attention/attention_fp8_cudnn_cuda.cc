// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_fp8_cudnn_cuda.h"

#include <cuda_runtime.h>

#include <map>
#include <memory>

#include "base/format.h"
#include "base/log.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/cudnn/cudnn_plan_cuda.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace vfm::ops {
namespace {

// Never destroyed: the driver may be gone before static objects are.
const CudnnPlan& fp8_plan_for(const Fp8AttentionShape& shape) {
  static auto* const plans = new std::map<Fp8AttentionShape, std::unique_ptr<CudnnPlan>>;
  std::unique_ptr<CudnnPlan>& plan = (*plans)[shape];
  if (!plan) {
    plan = std::make_unique<CudnnPlan>(attention_fp8_graph(shape));
    log_debug("cuDNN plan for attention in FP8 of {}: {} bytes of scratch", text_of(shape),
              plan->workspace());
  }
  return *plan;
}

}  // namespace

std::string why_no_cudnn_fp8() {
  if (std::string why = why_no_cudnn(); !why.empty()) return why;
  if (cudnn_version_number() >= 91400) return "";
  return vfm::format("cuDNN is of version {}; attention in FP8 needs 9.14", cudnn_version());
}

bool cudnn_fp8_writes_bf16() {
  static const bool writes = [] {
    int device = 0, major = 0;
    check_gpu(cudaGetDevice(&device), "name the GPU");
    check_gpu(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "describe the GPU");
    return major == 10;
  }();
  return writes;
}

void attention_fp8_cudnn(const Fp8CudnnCall& call) {
  const CudnnPlan& plan = fp8_plan_for(call.shape);
  const Tensor workspace({plan.workspace()}, DType::u8, Device::cuda),
      largest({2}, DType::f32, Device::cuda);
  float* const scales = const_cast<float*>(call.scales);
  CudnnPlan::Memory memory = {
      {kCodesQ, const_cast<void*>(call.q)},
      {kCodesK, const_cast<void*>(call.k)},
      {kCodesV, const_cast<void*>(call.v)},
      {kFp8Out, call.out},
      {kDescaleQ, scales},
      {kDescaleK, scales + 1},
      {kDescaleV, scales + 2},
      {kLargestWeight, largest.data<float>()},
      {kLargestOut, largest.data<float>() + 1},
  };
  if (!call.shape.wide) memory[kScaleOut] = scales + 3;
  plan.run(memory, workspace.raw());
}

}  // namespace vfm::ops
