// SPDX-License-Identifier: Apache-2.0
#include "ops/cudnn/cudnn_cuda.h"

#include <cuda_runtime.h>

#include "ops/cudnn/cudnn_plan_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

std::string probe() {
  if (std::string why = why_no_cudnn_library(); !why.empty()) return why;
  if (std::string why = why_no_gpu(); !why.empty()) return why;
  int device = 0, major = 0;
  check_gpu(cudaGetDevice(&device), "name the GPU");
  check_gpu(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
            "describe the GPU");
  return major >= 9 ? "" : "this GPU is older than Hopper (compute capability 9.0)";
}

}  // namespace

std::string why_no_cudnn() {
  static const std::string why = probe();
  return why;
}

std::string describe_cudnn() {
  const std::string why = why_no_cudnn_library();
  return why.empty() ? cudnn_version() : why;
}

}  // namespace vfm::ops
