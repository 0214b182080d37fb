// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "reconstruction.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1024;

std::int64_t blocks_of(std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return blocks < kMostBlocks ? blocks : kMostBlocks;
}

__global__ void __launch_bounds__(kThreads) fsq_kernel(const Fsq c) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < c.count;
       i += step) {
    const int d = static_cast<int>(i % c.levels.dimensions);
    const float bent = tanhf(c.z[i] + c.levels.shift[d]);
    if (c.gradient != nullptr) {
      c.out[i] = c.gradient[i] * (1.f - bent * bent) * c.levels.half[d] / c.levels.middle[d];
      continue;
    }
    const float level = rintf(bent * c.levels.half[d] - c.levels.offset[d]);
    // Not fminf and fmaxf, which would lose a NaN.
    const float above = level < c.levels.lowest[d] ? c.levels.lowest[d] : level;
    c.out[i] = (above > c.levels.highest[d] ? c.levels.highest[d] : above) / c.levels.middle[d];
  }
}

__global__ void __launch_bounds__(kThreads) error_kernel(const PixelError c) {
  __shared__ double shared[kThreads / 32];
  double absolute = 0, squares = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < c.count;
       i += step) {
    const float error = c.output[i] - c.target[i];
    absolute += fabsf(error);
    squares += static_cast<double>(error) * error;
    if (c.seed == nullptr) continue;
    const float sign = error > 0 ? 1.f : error < 0 ? -1.f : 0.f;
    c.seed[i] = c.scale * (c.l1 * sign + 2 * c.l2 * error);
  }
  absolute = block_sum<kThreads>(absolute, shared);
  squares = block_sum<kThreads>(squares, shared);
  if (threadIdx.x != 0) return;
  c.partial[2 * blockIdx.x] = absolute;
  c.partial[2 * blockIdx.x + 1] = squares;
}

__global__ void __launch_bounds__(kThreads)
    sums_kernel(const double* partial, int blocks, double* sums) {
  __shared__ double shared[kThreads / 32];
  for (int which = 0; which < 2; ++which) {
    double sum = 0;
    for (int i = threadIdx.x; i < blocks; i += kThreads)
      sum += partial[2 * i + which];
    sum = block_sum<kThreads>(sum, shared);
    if (threadIdx.x == 0) sums[which] = sum;
  }
}

}  // namespace

int fsq(const Fsq& call, CUstream_st* stream) {
  if (call.levels.dimensions < 1 || call.levels.dimensions > kMostLevels || call.count < 0 ||
      call.count % call.levels.dimensions != 0)
    return cudaErrorInvalidValue;
  return launch(fsq_kernel, dim3(static_cast<unsigned>(blocks_of(call.count))), kThreads, 0, stream,
                call);
}

std::int64_t pixel_error_partials(std::int64_t count) {
  return 2 * blocks_of(count);
}

int pixel_error(const PixelError& call, CUstream_st* stream) {
  if (call.count < 0) return cudaErrorInvalidValue;
  const auto blocks = static_cast<unsigned>(blocks_of(call.count));
  const int status = launch(error_kernel, dim3(blocks), kThreads, 0, stream, call);
  if (status != cudaSuccess) return status;
  return launch(sums_kernel, dim3(1), kThreads, 0, stream, static_cast<const double*>(call.partial),
                static_cast<int>(blocks), call.sums);
}

}  // namespace vfm::kernels
