// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "common/fp8.cuh"
#include "common/launch.cuh"
#include "common/pack.cuh"
#include "quantize.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kEach = 16;  // elements that a thread takes at a time: 16 bytes of E4M3
constexpr std::int64_t kMostElements = std::int64_t{1} << 38;

// Elements i to i + 15, zeros from `count` on.
template <class T, bool kVector>
__device__ __forceinline__ void load_each(const T* x, std::int64_t i, std::int64_t count,
                                          float (&v)[kEach]) {
  const int left = static_cast<int>(min(count - i, static_cast<std::int64_t>(kEach)));
  if (kVector && left == kEach) {
    constexpr int kAtOnce = kPack<T>;
#pragma unroll
    for (int part = 0; part < kEach; part += kAtOnce) {
      float some[kAtOnce];
      unpack(*reinterpret_cast<const uint4*>(x + i + part), some);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        v[part + j] = some[j];
    }
  } else {
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      v[j] = j < left ? static_cast<float>(x[i + j]) : 0.f;
  }
}

// The largest of all threads', in every thread.
__device__ __forceinline__ unsigned max_of_block(unsigned value, unsigned (&shared)[kWarps]) {
  value = max_of_warp(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp)
    value = value > shared[warp] ? value : shared[warp];
  return value;
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const T* x, std::int64_t count, std::uint32_t* largest) {
  __shared__ unsigned shared[kWarps];
  unsigned most = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads * kEach;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEach; i < count;
       i += step) {
    float v[kEach];
    load_each<T, kVector>(x, i, count, v);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      most = max(most, magnitude_bits(v[j]));
  }
  most = max_of_block(most, shared);
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads)
    values_kernel(const T* x, std::int64_t count, const std::uint32_t* largest, int parts,
                  std::uint8_t* values, float* scale) {
  __shared__ unsigned shared[kWarps];
  unsigned most = 0;
  for (int part = static_cast<int>(threadIdx.x); part < parts; part += kThreads)
    most = max(most, largest[part]);
  const Fp8Scale by = fp8_scale(max_of_block(most, shared));
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = by.scale;
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEach;
  if (i >= count) return;
  float v[kEach];
  load_each<T, kVector>(x, i, count, v);
  const uint4 bytes = quantize_16(v, by.inverse);
  const int left = static_cast<int>(min(count - i, static_cast<std::int64_t>(kEach)));
  if (kVector && left == kEach)
    *reinterpret_cast<uint4*>(values + i) = bytes;
  else
    store_pack<std::uint8_t, false>(values + i, bytes, left);
}

template <class T, bool kVector>
int launch_both(const Quantize& c, cudaStream_t stream) {
  cudaError_t status = fp8_code(values_kernel<T, kVector>);
  if (status != cudaSuccess) return status;
  const auto* x = static_cast<const T*>(c.x);
  const std::int64_t each = std::int64_t{kThreads} * kEach;
  const auto blocks = static_cast<unsigned>(std::max<std::int64_t>((c.count + each - 1) / each, 1));
  const unsigned parts = std::min<unsigned>(blocks, kQuantizeParts);
  status =
      launch(largest_kernel<T, kVector>, dim3(parts), kThreads, 0, stream, x, c.count, c.largest);
  if (status != cudaSuccess) return status;
  return launch(values_kernel<T, kVector>, dim3(blocks), kThreads, 0, stream, x, c.count, c.largest,
                static_cast<int>(parts), c.values, c.scale);
}

template <class T>
int launch_type(const Quantize& c, cudaStream_t stream) {
  return aligned_to_16(c.x, c.values) ? launch_both<T, true>(c, stream)
                                      : launch_both<T, false>(c, stream);
}

}  // namespace

int quantize(const Quantize& call, CUstream_st* stream) {
  if (call.count < 0 || call.count > kMostElements) return cudaErrorInvalidValue;
  return call.type == Type::bf16 ? launch_type<__nv_bfloat16>(call, stream)
                                 : launch_type<float>(call, stream);
}

}  // namespace vfm::kernels
