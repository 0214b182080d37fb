// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/chunk_sums.cuh"
#include "common/launch.cuh"
#include "common/pack.cuh"
#include "common/reduce.cuh"
#include "heads_norm.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kColumnThreads = 128;  // of a block of the gradients, a pack of columns each

__device__ __forceinline__ float inverse_rms(float sum, const HeadsNorm& c) {
  return 1.f / sqrtf(sum / static_cast<float>(c.all) + c.epsilon);
}

// The elements of a row from `at` on, as far as a pack and the row go.
template <class T, bool kVector>
__device__ __forceinline__ int pack_count(const HeadsNorm& c, std::int64_t at) {
  return kVector ? kPack<T> : static_cast<int>(min(c.width - at, std::int64_t{kPack<T>}));
}
template <class T, bool kVector>
__device__ __forceinline__ void load_part(const void* p, const HeadsNorm& c, std::int64_t token,
                                          std::int64_t at, float (&v)[kPack<T>]) {
  const T* const row = static_cast<const T*>(p) + token * c.stride;
  unpack(load_pack<T, kVector>(row + at, pack_count<T, kVector>(c, at)), v);
}
template <class T, bool kVector>
__device__ __forceinline__ void store_part(void* p, const HeadsNorm& c, std::int64_t token,
                                           std::int64_t at, const float (&v)[kPack<T>]) {
  T* const row = static_cast<T*>(p) + token * c.stride;
  store_pack<T, kVector>(row + at, pack(v), pack_count<T, kVector>(c, at));
}

// One block a token.
template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) forward_kernel(const HeadsNormForward c) {
  constexpr int P = kPack<T>;
  __shared__ float shared[kWarps];
  const std::int64_t token = blockIdx.x, first = std::int64_t{threadIdx.x} * P;
  float x[P], sum = 0;
  if (c.summed) {
    sum = c.sums[token * c.step];
  } else {
    for (std::int64_t at = first; at < c.width; at += kThreads * P) {
      load_part<T, kVector>(c.x, c, token, at, x);
#pragma unroll
      for (int i = 0; i < P; ++i)
        sum += x[i] * x[i];
    }
    sum = block_sum<kThreads>(sum, shared);
    if (threadIdx.x == 0) c.sums[token * c.step] = sum;
  }
  if (c.y == nullptr) return;
  const float r = inverse_rms(sum, c);
  for (std::int64_t at = first; at < c.width; at += kThreads * P) {
    float w[P];
    load_part<T, kVector>(c.x, c, token, at, x);
    load_floats<kVector>(c.weight + at, pack_count<T, kVector>(c, at), w);
#pragma unroll
    for (int i = 0; i < P; ++i)
      x[i] = x[i] * r * w[i];
    store_part<T, kVector>(c.y, c, token, at, x);
  }
}

// One block a token.
template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) products_kernel(const HeadsNormBackward c) {
  constexpr int P = kPack<T>;
  __shared__ float shared[kWarps];
  const std::int64_t token = blockIdx.x;
  const float r = inverse_rms(c.sums[token * c.step], c);
  float product = 0;
  for (std::int64_t at = std::int64_t{threadIdx.x} * P; at < c.width; at += kThreads * P) {
    float x[P], dy[P], w[P];
    load_part<T, kVector>(c.x, c, token, at, x);
    load_part<T, kVector>(c.dy, c, token, at, dy);
    load_floats<kVector>(c.weight + at, pack_count<T, kVector>(c, at), w);
    // Not with r taken out of the sum: where squares overflow, r is 0 and dy w x may be infinite.
#pragma unroll
    for (int i = 0; i < P; ++i)
      product += dy[i] * w[i] * (x[i] * r);
  }
  product = block_sum<kThreads>(product, shared);
  if (threadIdx.x == 0) c.products[token * c.step] = product;
}

// A block has some columns of a chunk of tokens; a thread keeps its columns' part of dweight.
template <class T, bool kVector>
__global__ void __launch_bounds__(kColumnThreads) gradients_kernel(const HeadsNormBackward c) {
  constexpr int P = kPack<T>;
  const std::int64_t at = (std::int64_t{blockIdx.y} * kColumnThreads + threadIdx.x) * P;
  if (at >= c.width) return;
  const int count = pack_count<T, kVector>(c, at);
  const std::int64_t begin = blockIdx.x * kHeadsNormChunk;
  const std::int64_t end = min(begin + kHeadsNormChunk, c.tokens);
  float w[P], sums[P] = {};
  load_floats<kVector>(c.weight + at, count, w);
  for (std::int64_t token = begin; token < end; ++token) {
    const float r = inverse_rms(c.sums[token * c.step], c);
    const float mean = c.products[token * c.step] / static_cast<float>(c.all);
    float x[P], dy[P];
    load_part<T, kVector>(c.x, c, token, at, x);
    load_part<T, kVector>(c.dy, c, token, at, dy);
#pragma unroll
    for (int i = 0; i < P; ++i) {
      const float n = x[i] * r;
      sums[i] += dy[i] * n;
      dy[i] = r * (dy[i] * w[i] - n * mean);
    }
    store_part<T, kVector>(c.dx, c, token, at, dy);
  }
  if (c.dweight == nullptr) return;
  float* const partial = c.partial + std::int64_t{blockIdx.x} * c.width + at;
#pragma unroll
  for (int i = 0; i < P; i += 4) {
    const float four[4] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
    store_pack<float, kVector>(partial + i, pack(four), count - i);
  }
}

__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const float* partial, std::int64_t chunks, std::int64_t width, float* dweight) {
  add_chunks<kThreads>(partial, chunks, width, dweight);
}

bool refused(const HeadsNorm& c) {
  return c.tokens < 0 || c.tokens > 0x7fffffff || c.width < 0 || c.width > 0x7fffffff ||
         c.width > c.stride || c.width > c.all || c.step < 1;
}

// Whether 16 bytes may be read at once everywhere.
bool vectors(const HeadsNorm& c, const void* a, const void* b, const void* d) {
  const int pack = c.type == Type::bf16 ? kPack<__nv_bfloat16> : kPack<float>;
  return aligned_to_16(c.x, a, b, d) && aligned_to_16(c.weight) && c.width % pack == 0 &&
         c.stride % pack == 0;
}

template <class Call>
using Kernel = void (*)(Call);

template <class Call>
int launch_any(const Call& c, bool vector, const Kernel<Call> (&kernels)[2][2], dim3 blocks,
               int threads, cudaStream_t stream) {
  return launch(kernels[c.type == Type::bf16][vector], blocks, threads, 0, stream, c);
}

}  // namespace

int heads_norm_forward(const HeadsNormForward& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  if (call.tokens == 0) return cudaSuccess;
  return launch_any<HeadsNormForward>(
      call, vectors(call, call.y, nullptr, nullptr),
      {{forward_kernel<float, false>, forward_kernel<float, true>},
       {forward_kernel<__nv_bfloat16, false>, forward_kernel<__nv_bfloat16, true>}},
      dim3(static_cast<unsigned>(call.tokens)), kThreads, stream);
}

int heads_norm_products(const HeadsNormBackward& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  if (call.tokens == 0) return cudaSuccess;
  return launch_any<HeadsNormBackward>(
      call, vectors(call, call.dy, nullptr, nullptr),
      {{products_kernel<float, false>, products_kernel<float, true>},
       {products_kernel<__nv_bfloat16, false>, products_kernel<__nv_bfloat16, true>}},
      dim3(static_cast<unsigned>(call.tokens)), kThreads, stream);
}

int heads_norm_gradients(const HeadsNormBackward& call, CUstream_st* stream) {
  const std::int64_t chunks = (call.tokens + kHeadsNormChunk - 1) / kHeadsNormChunk;
  if (refused(call) || (call.dweight && !call.partial && chunks > 0)) return cudaErrorInvalidValue;
  if (call.width == 0) return cudaSuccess;
  const std::int64_t columns =
      kColumnThreads * (call.type == Type::bf16 ? kPack<__nv_bfloat16> : kPack<float>);
  const int status = launch_any<HeadsNormBackward>(
      call, vectors(call, call.dy, call.dx, call.partial),
      {{gradients_kernel<float, false>, gradients_kernel<float, true>},
       {gradients_kernel<__nv_bfloat16, false>, gradients_kernel<__nv_bfloat16, true>}},
      dim3(static_cast<unsigned>(chunks), static_cast<unsigned>((call.width - 1) / columns + 1)),
      kColumnThreads, stream);
  if (status != cudaSuccess || call.dweight == nullptr) return status;
  return launch(reduce_kernel, dim3(static_cast<unsigned>((call.width - 1) / 32 + 1)), kThreads, 0,
                stream, static_cast<const float*>(call.partial), chunks, call.width, call.dweight);
}

}  // namespace vfm::kernels
