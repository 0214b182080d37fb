// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "cross_entropy.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 512;

// ln sum e^row, for every thread.
__device__ float log_sum_exp(const CrossEntropy& c, const float* row, float* shared) {
  float largest = -INFINITY;
  for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
    largest = fmaxf(largest, row[v]);
  largest = block_max<kThreads>(largest, shared);  // a NaN that is lost comes back in the sum
  float sum = 0;
  for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
    sum += expf(row[v] - largest);
  sum = block_sum<kThreads>(sum, shared);
  return largest + logf(sum);
}

// Loss and gradient of a token whose target is in that column, or in none: all threads have read
// what they need of the row.
__device__ void finish(const CrossEntropy& c, float* row, int column, float lse, float of_target) {
  if (threadIdx.x == 0) c.losses[blockIdx.x] = lse - of_target + c.z_loss * lse * lse;
  if (c.scale == 0) return;
  const float factor = c.scale * (1.f + 2.f * c.z_loss * lse);
  for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
    row[v] = factor * expf(row[v] - lse) - (v == column ? c.scale : 0.f);
}

__device__ void no_target(const CrossEntropy& c, float* row) {
  if (threadIdx.x == 0) c.losses[blockIdx.x] = 0;
  if (c.scale != 0)
    for (std::int64_t v = threadIdx.x; v < c.vocabulary; v += kThreads)
      row[v] = 0;
}

__global__ void __launch_bounds__(kThreads) loss_kernel(const CrossEntropy c) {
  __shared__ float shared[kThreads / 32];
  float* const row = c.logits + std::int64_t{blockIdx.x} * c.vocabulary;
  const int target = c.targets[blockIdx.x];
  if (target < 0) return no_target(c, row);
  const float lse = log_sum_exp(c, row, shared), of_target = row[target];
  __syncthreads();  // all have read the target's logit
  finish(c, row, target, lse, of_target);
}

__global__ void __launch_bounds__(kThreads) part_kernel(const CrossEntropy c) {
  __shared__ float shared[kThreads / 32];
  const std::int64_t token = blockIdx.x;
  const float* const row = c.logits + token * c.vocabulary;
  const int target = c.targets[token];
  const float lse = target < 0 ? 0.f : log_sum_exp(c, row, shared);
  if (threadIdx.x > 0) return;
  const std::int64_t column = target - c.first;
  const bool here = target >= 0 && column >= 0 && column < c.vocabulary;
  c.part[2 * token] = lse;
  c.part[2 * token + 1] = here ? row[column] : 0.f;
}

__global__ void __launch_bounds__(kThreads) merged_kernel(const CrossEntropy c) {
  const std::int64_t token = blockIdx.x;
  float* const row = c.logits + token * c.vocabulary;
  const int target = c.targets[token];
  if (target < 0) return no_target(c, row);
  float largest = -INFINITY, sum = 0, of_target = 0;
  for (std::int64_t s = 0; s < c.shares; ++s)
    largest = fmaxf(largest, c.parts[2 * (s * c.tokens + token)]);
  for (std::int64_t s = 0; s < c.shares; ++s) {
    const float* const part = c.parts + 2 * (s * c.tokens + token);
    sum += expf(part[0] - largest);
    of_target += part[1];
  }
  finish(c, row, target - static_cast<int>(c.first), largest + logf(sum), of_target);
}

bool can_be(const CrossEntropy& call) {
  return call.tokens >= 0 && call.tokens <= 0x7fffffff && call.vocabulary >= 0 &&
         (call.tokens == 0 || call.vocabulary > 0);
}

}  // namespace

int cross_entropy_part(const CrossEntropy& call, CUstream_st* stream) {
  if (!can_be(call)) return cudaErrorInvalidValue;
  return launch(part_kernel, dim3(static_cast<unsigned>(call.tokens)), kThreads, 0, stream, call);
}

int cross_entropy(const CrossEntropy& call, CUstream_st* stream) {
  if (!can_be(call) || (call.parts != nullptr && call.shares < 1)) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>(call.tokens));
  return call.parts == nullptr ? launch(loss_kernel, grid, kThreads, 0, stream, call)
                               : launch(merged_kernel, grid, kThreads, 0, stream, call);
}

}  // namespace vfm::kernels
