// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "common/fp8.cuh"
#include "common/launch.cuh"
#include "common/normal.cuh"
#include "common/pack.cuh"
#include "quantize.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
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

// What activation_forward() writes of them.
template <class T>
__device__ __forceinline__ void gelu_each(float (&v)[kEach]) {
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    v[j] = gelu(v[j], normal(v[j]));
  round_to<T>(v);
}

// Whether gelu of none of them can be larger than `most`, so that it need not be computed, which
// would take longer than reading x. Of x from 0 on it is at most x, of one below at most 0.17, as
// computed too, in f32 and in bf16; but of minus infinity NaN. (Below 2^-126 it may be more by a
// rounding, which is nothing to the smallest range of a scale.)
__device__ __forceinline__ bool gelu_within(const float (&v)[kEach], unsigned most) {
  int largest = 0;        // of positive ones: these bits are ordered as the values are
  unsigned negative = 0;  // the farthest below 0
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    largest = max(largest, __float_as_int(v[j]));
    negative = max(negative, __float_as_uint(v[j]));
  }
  return most >= __float_as_uint(0.171f) && static_cast<unsigned>(largest) <= most &&
         negative < 0xff800000u;
}

template <class T, bool kVector, bool kGelu>
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const T* x, std::int64_t count, std::uint32_t* largest) {
  __shared__ unsigned shared[kThreads / 32];
  unsigned most = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads * kEach;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEach; i < count;
       i += step) {
    float v[kEach];
    load_each<T, kVector>(x, i, count, v);
    if constexpr (kGelu) {
      if (gelu_within(v, most)) continue;
      gelu_each<T>(v);
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      most = max(most, magnitude_bits(v[j]));
  }
  most = max_of_block<kThreads>(most, shared);
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

template <class T, bool kVector, bool kGelu>
__global__ void __launch_bounds__(kThreads)
    values_kernel(const T* x, std::int64_t count, const std::uint32_t* largest, int parts,
                  std::uint8_t* values, float* scale) {
  __shared__ unsigned shared[kThreads / 32];
  const Fp8Scale by = fp8_scale(max_of_parts<kThreads>(largest, parts, shared));
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = by.scale;
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEach;
  if (i >= count) return;
  float v[kEach];
  load_each<T, kVector>(x, i, count, v);
  if constexpr (kGelu) gelu_each<T>(v);
  const uint4 bytes = quantize_16(v, by.inverse);
  const int left = static_cast<int>(min(count - i, static_cast<std::int64_t>(kEach)));
  if (kVector && left == kEach)
    *reinterpret_cast<uint4*>(values + i) = bytes;
  else
    store_pack<std::uint8_t, false>(values + i, bytes, left);
}

std::int64_t blocks_of(std::int64_t count) {
  constexpr std::int64_t kBlock = kThreads * kEach;
  return std::max<std::int64_t>((count + kBlock - 1) / kBlock, 1);
}

bool takes(std::int64_t count) {
  return count >= 0 && count <= kMostElements;
}

template <class T, bool kVector, bool kGelu>
int launch_largest(const void* x, std::int64_t count, std::uint32_t* largest, cudaStream_t stream) {
  const dim3 parts(static_cast<unsigned>(quantize_parts(count)));
  return launch(largest_kernel<T, kVector, kGelu>, parts, kThreads, 0, stream,
                static_cast<const T*>(x), count, largest);
}

template <class T, bool kVector, bool kGelu>
int launch_both(const Quantize& c, cudaStream_t stream) {
  const auto values = values_kernel<T, kVector, kGelu>;
  int status = fp8_code(values);
  if (status != cudaSuccess) return status;
  if (c.given == 0) status = launch_largest<T, kVector, kGelu>(c.x, c.count, c.largest, stream);
  if (status != cudaSuccess) return status;
  const int parts = c.given > 0 ? c.given : quantize_parts(c.count);
  return launch(values, dim3(static_cast<unsigned>(blocks_of(c.count))), kThreads, 0, stream,
                static_cast<const T*>(c.x), c.count, c.largest, parts, c.values, c.scale);
}

template <class T>
int launch_type(const Quantize& c, cudaStream_t stream) {
  const bool vector = aligned_to_16(c.x, c.values);
  if (c.gelu)
    return vector ? launch_both<T, true, true>(c, stream) : launch_both<T, false, true>(c, stream);
  return vector ? launch_both<T, true, false>(c, stream) : launch_both<T, false, false>(c, stream);
}

template <class T>
int launch_type(const void* x, std::int64_t count, std::uint32_t* largest, cudaStream_t stream) {
  return aligned_to_16(x) ? launch_largest<T, true, false>(x, count, largest, stream)
                          : launch_largest<T, false, false>(x, count, largest, stream);
}

}  // namespace

int quantize_parts(std::int64_t count) {
  return static_cast<int>(std::min<std::int64_t>(blocks_of(count), kQuantizeParts));
}

int largest_magnitudes(Type type, const void* x, std::int64_t count, std::uint32_t* largest,
                       CUstream_st* stream) {
  if (!takes(count)) return cudaErrorInvalidValue;
  return type == Type::bf16 ? launch_type<__nv_bfloat16>(x, count, largest, stream)
                            : launch_type<float>(x, count, largest, stream);
}

int quantize(const Quantize& call, CUstream_st* stream) {
  if (!takes(call.count) || call.given < 0) return cudaErrorInvalidValue;
  return call.type == Type::bf16 ? launch_type<__nv_bfloat16>(call, stream)
                                 : launch_type<float>(call, stream);
}

}  // namespace vfm::kernels
