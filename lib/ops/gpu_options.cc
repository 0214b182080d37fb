// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_options.h"

#include "base/error.h"
#include "ops/attention/attention_choice.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/determinism.h"
#include "ops/matmul/gemm.h"
#include "tensor/device.h"

namespace vfm::ops {

void set_gpu_options(Device device, bool deterministic, std::string_view attention,
                     const std::string& cache_folder) {
  const AttentionBody body = parse_attention_body(attention);
  if (device == Device::cpu && body != AttentionBody::automatic)
    fail_usage("--attention {} is for a GPU, and this run computes on the CPU", attention);
  set_deterministic(deterministic);
  set_attention_body(body);
  if (!cache_folder.empty()) set_gemm_cache(cache_folder + "/gemm");
}

std::string gpu_versions() {
  std::string text = "CUDA: " + describe_cuda() + "\n";
  if constexpr (kHaveCuda) text += "cuDNN: " + describe_cudnn() + "\n";
  return text;
}

}  // namespace vfm::ops
