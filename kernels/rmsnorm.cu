// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdint>

#include "common/chunk_sums.cuh"
#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "rmsnorm.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kStep = kThreads * 4;
constexpr int kMostQuads = 6;  // of a row in each thread's registers

__device__ __forceinline__ float dot4(float4 a, float4 b) {
  return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
}
__device__ __forceinline__ float4 mul4(float4 a, float4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
__device__ __forceinline__ float4 scale4(float4 a, float b) {
  return {a.x * b, a.y * b, a.z * b, a.w * b};
}
__device__ __forceinline__ float4 fma4(float4 a, float4 b, float4 c) {
  return {a.x * b.x + c.x, a.y * b.y + c.y, a.z * b.z + c.z, a.w * b.w + c.w};
}

__device__ __forceinline__ float inverse_rms(float squares, int width, float epsilon,
                                             float* shared) {
  return 1.f / sqrtf(block_sum<kThreads>(squares, shared) / static_cast<float>(width) + epsilon);
}

// One block a token, kQuads groups of four elements in each thread's registers.
template <int kQuads>
__global__ void __launch_bounds__(kThreads) forward_kernel(const RmsnormForward c) {
  __shared__ float shared[kWarps];
  const std::int64_t row = std::int64_t{blockIdx.x} * c.width;
  const int first = static_cast<int>(threadIdx.x) * 4;
  float4 x[kQuads];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    const int at = first + i * kStep;
    x[i] = at < c.width ? load4(c.x + row + at) : float4{0, 0, 0, 0};
    squares += dot4(x[i], x[i]);
  }
  const float r = inverse_rms(squares, c.width, c.epsilon, shared);
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    const int at = first + i * kStep;
    if (at < c.width) store4(c.y + row + at, mul4(scale4(x[i], r), load4(c.weight + at)));
  }
}

// Rows of any width, one element after the other.
__global__ void __launch_bounds__(kThreads) plain_forward_kernel(const RmsnormForward c) {
  __shared__ float shared[kWarps];
  const std::int64_t row = std::int64_t{blockIdx.x} * c.width;
  const float* x = c.x + row;
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads)
    squares += x[i] * x[i];
  const float r = inverse_rms(squares, c.width, c.epsilon, shared);
  for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads)
    c.y[row + i] = x[i] * r * c.weight[i];
}

// One block a chunk of tokens; a thread keeps its columns' part of dweight in registers.
template <int kQuads>
__global__ void __launch_bounds__(kThreads) backward_kernel(const RmsnormBackward c) {
  __shared__ float shared[kWarps];
  const int first = static_cast<int>(threadIdx.x) * 4;
  const std::int64_t begin = blockIdx.x * kRmsnormChunk;
  const std::int64_t end = min(begin + kRmsnormChunk, c.tokens);
  float4 sums[kQuads] = {};
  for (std::int64_t token = begin; token < end; ++token) {
    const std::int64_t row = token * c.width;
    float4 n[kQuads], g[kQuads];
    float squares = 0, product = 0;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = first + i * kStep;
      n[i] = at < c.width ? load4(c.x + row + at) : float4{0, 0, 0, 0};
      g[i] = at < c.width ? load4(c.dy + row + at) : float4{0, 0, 0, 0};
      squares += dot4(n[i], n[i]);
    }
    const float r = inverse_rms(squares, c.width, c.epsilon, shared);
    // Not with r taken out of the sum: where squares overflow, r is 0 and g x may be infinite.
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = first + i * kStep;
      if (at >= c.width) continue;
      n[i] = scale4(n[i], r);
      sums[i] = fma4(g[i], n[i], sums[i]);
      g[i] = mul4(g[i], load4(c.weight + at));
      product += dot4(g[i], n[i]);
    }
    product = block_sum<kThreads>(product, shared) / static_cast<float>(c.width);
    const float4 minus = {-product, -product, -product, -product};
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = first + i * kStep;
      if (at < c.width) store4(c.dx + row + at, scale4(fma4(n[i], minus, g[i]), r));
    }
  }
  if (c.dweight == nullptr) return;
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    const int at = first + i * kStep;
    if (at < c.width) store4(c.partial + std::int64_t{blockIdx.x} * c.width + at, sums[i]);
  }
}

// The same for any width. Rows are read again instead of kept, the sums stand in `partial`; an
// element always belongs to the same thread.
__global__ void __launch_bounds__(kThreads) plain_backward_kernel(const RmsnormBackward c) {
  __shared__ float shared[kWarps];
  const std::int64_t begin = blockIdx.x * kRmsnormChunk;
  const std::int64_t end = min(begin + kRmsnormChunk, c.tokens);
  float* sums = c.dweight ? c.partial + std::int64_t{blockIdx.x} * c.width : nullptr;
  for (std::int64_t token = begin; token < end; ++token) {
    const float* x = c.x + token * c.width;
    const float* dy = c.dy + token * c.width;
    float* dx = c.dx + token * c.width;
    float squares = 0, product = 0;
    for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads)
      squares += x[i] * x[i];
    const float r = inverse_rms(squares, c.width, c.epsilon, shared);
    for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads) {
      const float n = x[i] * r;
      if (sums) sums[i] = (token == begin ? 0.f : sums[i]) + dy[i] * n;
      product += dy[i] * c.weight[i] * n;
    }
    product = block_sum<kThreads>(product, shared) / static_cast<float>(c.width);
    for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads)
      dx[i] = r * (dy[i] * c.weight[i] - x[i] * r * product);
  }
}

__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const float* partial, std::int64_t chunks, int width, float* dweight) {
  add_chunks<kThreads>(partial, chunks, width, dweight);
}

// Takes the widths for which rows stay in registers; 0: no number of quads fits.
int quads(int width) {
  const int needed = (width - 1) / kStep + 1;
  return width % 4 != 0 || needed > kMostQuads ? 0 : needed;
}

bool refused(std::int64_t tokens, int width, bool aligned) {
  return !aligned || tokens < 0 || tokens > 0x7fffffff || width < 0;
}

}  // namespace

int rmsnorm_forward(const RmsnormForward& call, CUstream_st* stream) {
  if (refused(call.tokens, call.width, aligned_to_16(call.x, call.weight, call.y)))
    return cudaErrorInvalidValue;
  if (call.tokens == 0 || call.width == 0) return cudaSuccess;
  const int n = quads(call.width);
  const auto kernel = n == 0   ? plain_forward_kernel
                      : n == 1 ? forward_kernel<1>
                      : n == 2 ? forward_kernel<2>
                      : n <= 4 ? forward_kernel<4>
                               : forward_kernel<6>;
  return launch(kernel, dim3(static_cast<unsigned>(call.tokens)), kThreads, 0, stream, call);
}

int rmsnorm_backward(const RmsnormBackward& call, CUstream_st* stream) {
  if (refused(call.tokens, call.width,
              aligned_to_16(call.x, call.weight, call.dy, call.dx, call.dweight, call.partial)))
    return cudaErrorInvalidValue;
  if (call.width == 0) return cudaSuccess;
  const std::int64_t chunks = (call.tokens + kRmsnormChunk - 1) / kRmsnormChunk;
  if (call.dweight && !call.partial && chunks > 0) return cudaErrorInvalidValue;
  const int n = quads(call.width);
  const auto kernel = n == 0   ? plain_backward_kernel
                      : n == 1 ? backward_kernel<1>
                      : n == 2 ? backward_kernel<2>
                      : n <= 4 ? backward_kernel<4>
                               : backward_kernel<6>;
  const int status = launch(kernel, dim3(static_cast<unsigned>(chunks)), kThreads, 0, stream, call);
  if (status != cudaSuccess || call.dweight == nullptr) return status;
  const dim3 blocks(static_cast<unsigned>((call.width - 1) / 32 + 1));
  return launch(reduce_kernel, blocks, kThreads, 0, stream, call.partial, chunks, call.width,
                call.dweight);
}

}  // namespace vfm::kernels
