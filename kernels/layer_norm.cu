// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdint>

#include "common/chunk_sums.cuh"
#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "layer_norm.h"

namespace vfm::kernels {
namespace {

// Rows of encoders are short: 384 to 1,664 numbers.
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kStep = kThreads * 4;
constexpr int kMostQuads = 8;  // of a row in each thread's registers

__device__ __forceinline__ float4 minus4(float4 a, float b) {
  return {a.x - b, a.y - b, a.z - b, a.w - b};
}
__device__ __forceinline__ float sum4(float4 a) {
  return (a.x + a.y) + (a.z + a.w);
}
__device__ __forceinline__ float squares4(float4 a) {
  return (a.x * a.x + a.y * a.y) + (a.z * a.z + a.w * a.w);
}

// What a row's numbers lose and are multiplied by, from the sums over all threads of their
// distances and squared distances from about the mean.
struct Moments {
  float off, r;
};
template <class Call>
__device__ __forceinline__ Moments moments(float sum, float squares, const Call& c, float* shared) {
  const float count = static_cast<float>(c.width);
  const float off = block_sum<kThreads>(sum, shared) / count;
  const float spread = block_sum<kThreads>(squares, shared) / count - off * off;
  const float variance = spread < 0 ? 0.f : spread;  // a NaN stays
  return {off, 1.f / sqrtf(variance + c.epsilon)};
}

// One block a token, kQuads groups of four elements in each thread's registers.
template <int kQuads>
__global__ void __launch_bounds__(kThreads) layer_norm_kernel(const LayerNorm c) {
  __shared__ float shared[kWarps];
  const std::int64_t row = std::int64_t{blockIdx.x} * c.width;
  const int begin = static_cast<int>(threadIdx.x) * 4;
  const float first = c.x[row];
  float4 x[kQuads];
  float distances = 0;
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    const int at = begin + i * kStep;
    x[i] = at < c.width ? load4(c.x + row + at) : float4{first, first, first, first};
    distances += sum4(minus4(x[i], first));
  }
  const float near = first + block_sum<kThreads>(distances, shared) / static_cast<float>(c.width);
  float sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    const int at = begin + i * kStep;
    x[i] = at < c.width ? minus4(x[i], near) : float4{0, 0, 0, 0};
    sum += sum4(x[i]);
    squares += squares4(x[i]);
  }
  const Moments m = moments(sum, squares, c, shared);
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    const int at = begin + i * kStep;
    if (at >= c.width) continue;
    const float4 n = minus4(x[i], m.off), w = load4(c.weight + at), b = load4(c.bias + at);
    store4(c.y + row + at, {n.x * m.r * w.x + b.x, n.y * m.r * w.y + b.y, n.z * m.r * w.z + b.z,
                            n.w * m.r * w.w + b.w});
  }
}

// Rows of any width, one element after the other.
__global__ void __launch_bounds__(kThreads) plain_layer_norm_kernel(const LayerNorm c) {
  __shared__ float shared[kWarps];
  const std::int64_t row = std::int64_t{blockIdx.x} * c.width;
  const float* x = c.x + row;
  const float first = x[0];
  float distances = 0;
  for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads)
    distances += x[i] - first;
  const float near = first + block_sum<kThreads>(distances, shared) / static_cast<float>(c.width);
  float sum = 0, squares = 0;
  for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads) {
    const float d = x[i] - near;
    sum += d;
    squares += d * d;
  }
  const Moments m = moments(sum, squares, c, shared);
  for (std::int64_t i = threadIdx.x; i < c.width; i += kThreads)
    c.y[row + i] = (x[i] - near - m.off) * m.r * c.weight[i] + c.bias[i];
}

// Of a token in backward: what its numbers lose, in two steps, and are multiplied by; then the
// means of g and of g n.
struct TokenNumbers {
  float near, off, r, mean, product;
};
static_assert(sizeof(TokenNumbers) == kLayerNormNumbers * sizeof(float));

// Calls act(i) for a thread's elements of a row.
template <class Act>
__device__ __forceinline__ void each_element(int width, const Act& act) {
  for (std::int64_t i = threadIdx.x; i < width; i += kThreads)
    act(i);
}

// One block a token.
__global__ void __launch_bounds__(kThreads) numbers_kernel(const LayerNormBackward c) {
  __shared__ float shared[kWarps];
  const float* const x = c.x + std::int64_t{blockIdx.x} * c.width;
  const float* const dy = c.dy + std::int64_t{blockIdx.x} * c.width;
  const float first = x[0], count = static_cast<float>(c.width);
  float distances = 0, sum = 0, squares = 0, gradients = 0, products = 0;
  each_element(c.width, [&](std::int64_t i) { distances += x[i] - first; });
  const float near = first + block_sum<kThreads>(distances, shared) / count;
  each_element(c.width, [&](std::int64_t i) {
    const float d = x[i] - near;
    sum += d;
    squares += d * d;
  });
  const Moments m = moments(sum, squares, c, shared);
  each_element(c.width, [&](std::int64_t i) {
    const float g = dy[i] * c.weight[i];
    gradients += g;
    products += g * ((x[i] - near - m.off) * m.r);
  });
  const float mean = block_sum<kThreads>(gradients, shared) / count;
  const float product = block_sum<kThreads>(products, shared) / count;
  if (threadIdx.x == 0)
    reinterpret_cast<TokenNumbers*>(c.numbers)[blockIdx.x] = {near, m.off, m.r, mean, product};
}

// A block has some columns of a chunk of tokens, a thread one of them and its sums.
__global__ void __launch_bounds__(kThreads) gradients_kernel(const LayerNormBackward c) {
  const std::int64_t column = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (column >= c.width) return;
  const std::int64_t begin = blockIdx.x * kLayerNormChunk;
  const std::int64_t end = min(begin + kLayerNormChunk, c.tokens);
  const float weight = c.weight[column];
  float dweight = 0, dbias = 0;
#pragma unroll 4
  for (std::int64_t token = begin; token < end; ++token) {
    const TokenNumbers of = reinterpret_cast<const TokenNumbers*>(c.numbers)[token];
    const std::int64_t at = token * c.width + column;
    const float n = (c.x[at] - of.near - of.off) * of.r, dy = c.dy[at];
    dweight += dy * n;
    dbias += dy;
    c.dx[at] = of.r * (dy * weight - of.mean - n * of.product);
  }
  if (c.dboth == nullptr) return;
  float* const partial = c.partial + std::int64_t{blockIdx.x} * 2 * c.width + column;
  partial[0] = dweight;
  partial[c.width] = dbias;
}

__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const float* partial, std::int64_t chunks, std::int64_t width, float* out) {
  add_chunks<kThreads>(partial, chunks, width, out);
}

// Takes the widths for which rows stay in registers; 0: no number of quads fits.
int quads(int width) {
  const int needed = (width - 1) / kStep + 1;
  return width % 4 != 0 || needed > kMostQuads ? 0 : needed;
}

}  // namespace

int layer_norm(const LayerNorm& call, CUstream_st* stream) {
  if (call.tokens < 0 || call.tokens > 0x7fffffff || call.width < 0) return cudaErrorInvalidValue;
  if (call.tokens == 0 || call.width == 0) return cudaSuccess;
  const int n = aligned_to_16(call.x, call.weight, call.bias, call.y) ? quads(call.width) : 0;
  const auto kernel = n == 0   ? plain_layer_norm_kernel
                      : n == 1 ? layer_norm_kernel<1>
                      : n == 2 ? layer_norm_kernel<2>
                      : n == 3 ? layer_norm_kernel<3>
                      : n == 4 ? layer_norm_kernel<4>
                               : layer_norm_kernel<8>;
  return launch(kernel, dim3(static_cast<unsigned>(call.tokens)), kThreads, 0, stream, call);
}

int layer_norm_backward(const LayerNormBackward& call, CUstream_st* stream) {
  const std::int64_t chunks = (call.tokens + kLayerNormChunk - 1) / kLayerNormChunk;
  if (call.tokens < 0 || call.tokens > 0x7fffffff || call.width < 0 ||
      (call.dboth && !call.partial && chunks > 0))
    return cudaErrorInvalidValue;
  if (call.width == 0) return cudaSuccess;
  int status =
      launch(numbers_kernel, dim3(static_cast<unsigned>(call.tokens)), kThreads, 0, stream, call);
  if (status != cudaSuccess) return status;
  const dim3 blocks(static_cast<unsigned>(chunks),
                    static_cast<unsigned>((call.width - 1) / kThreads + 1));
  status = launch(gradients_kernel, blocks, kThreads, 0, stream, call);
  if (status != cudaSuccess || call.dboth == nullptr) return status;
  const std::int64_t width = 2 * std::int64_t{call.width};
  return launch(reduce_kernel, dim3(static_cast<unsigned>((width - 1) / 32 + 1)), kThreads, 0,
                stream, static_cast<const float*>(call.partial), chunks, width, call.dboth);
}

}  // namespace vfm::kernels
