// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "cross_entropy.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads) loss_kernel(const CrossEntropy c) {
  __shared__ float shared[kThreads / 32];
  const std::int64_t token = blockIdx.x;
  float* const row = c.logits + token * c.vocabulary;
  const int target = c.targets[token];
  if (target < 0) {
    if (threadIdx.x == 0) c.losses[token] = 0;
    if (c.scale != 0)
      for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
        row[v] = 0;
    return;
  }
  float largest = -INFINITY;
  for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
    largest = fmaxf(largest, row[v]);
  largest = block_max<kThreads>(largest, shared);  // a NaN that is lost comes back in the sum
  float sum = 0;
  for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
    sum += expf(row[v] - largest);
  sum = block_sum<kThreads>(sum, shared);
  const float lse = largest + logf(sum), of_target = row[target];
  if (threadIdx.x == 0) c.losses[token] = lse - of_target + c.z_loss * lse * lse;
  if (c.scale == 0) return;
  __syncthreads();  // all have read the target's logit
  const float factor = c.scale * (1.f + 2.f * c.z_loss * lse);
  for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
    row[v] = factor * expf(row[v] - lse) - (v == target ? c.scale : 0.f);
}

}  // namespace

int cross_entropy(const CrossEntropy& call, CUstream_st* stream) {
  if (call.tokens < 0 || call.tokens > 0x7fffffff || call.vocabulary < 0 ||
      (call.tokens > 0 && call.vocabulary == 0))
    return cudaErrorInvalidValue;
  return launch(loss_kernel, dim3(static_cast<unsigned>(call.tokens)), kThreads, 0, stream, call);
}

}  // namespace vfm::kernels
