// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "quantize_rows.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 16;  // elements that a thread takes at a time: 16 bytes of codes
constexpr float kSmallestRange = 0x1p-40f;

template <bool kE4m3>
constexpr float kLargestCode = kE4m3 ? 448.f : 127.f;

/// 16 elements of a row, of which there are `left`, zeros behind them; and back.
template <class T, bool kVector>
__device__ __forceinline__ void load_row(const T* x, int left, float (&v)[kEach]) {
  constexpr int kAtOnce = kPack<T>;
#pragma unroll
  for (int part = 0; part < kEach; part += kAtOnce) {
    float some[kAtOnce];
    unpack(load_pack<T, kVector>(x + part, left - part), some);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      v[part + j] = some[j];
  }
}

template <class T, bool kVector>
__device__ __forceinline__ void store_row(T* x, int left, const float (&v)[kEach]) {
  constexpr int kAtOnce = kPack<T>;
#pragma unroll
  for (int part = 0; part < kEach; part += kAtOnce) {
    float some[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      some[j] = v[part + j];
    store_pack<T, kVector>(x + part, pack(some), left - part);
  }
}

/// base/float8.h, and whole numbers.
template <bool kE4m3>
__device__ __forceinline__ unsigned code_of(float x) {
  if constexpr (!kE4m3) {
    if (x != x) return 0;  // NaN, as its scale is
    return static_cast<unsigned>(static_cast<int>(rintf(fminf(fmaxf(x, -127.f), 127.f)))) & 0xffu;
  } else {
    const unsigned bits = __float_as_uint(x), sign = bits >> 24 & 0x80u;
    const unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7f;
    if (magnitude > 0x43e00000u) return sign | 0x7eu;
    if (magnitude < 0x3c800000u)
      return sign |
             (__float_as_uint(__uint_as_float(magnitude) + 0x1p14f) - __float_as_uint(0x1p14f));
    return sign | (((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3));
  }
}

template <bool kE4m3>
__device__ __forceinline__ float number_of(unsigned code) {
  if constexpr (!kE4m3) {
    return static_cast<float>(static_cast<signed char>(code));
  } else {
    const unsigned sign = (code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude == 0x7fu) return __uint_as_float(sign | 0x7fc00000u);
    const unsigned small = __float_as_uint(static_cast<float>(magnitude) * 0x1p-9f);
    return __uint_as_float(sign | (magnitude < 8 ? small : (magnitude + (120u << 3)) << 20));
  }
}

// One block a row, in all three kernels: they are launched with as many threads as it has use for.

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) largest_rows_kernel(const QuantizeRows c) {
  __shared__ unsigned shared[kThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T* const x = static_cast<const T*>(c.x) + row * c.columns;
  unsigned most = 0;
  for (std::int64_t i = std::int64_t{threadIdx.x} * kEach; i < c.columns; i += kThreads * kEach) {
    float v[kEach];
    load_row<T, kVector>(x + i, static_cast<int>(min(c.columns - i, std::int64_t{kEach})), v);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      most = max(most, __float_as_uint(v[j]) & 0x7fffffffu);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp)
    most = max(most, shared[warp]);
  c.largest[row] = most;
}

template <class T, bool kVector, bool kE4m3>
__global__ void __launch_bounds__(kThreads) quantize_rows_kernel(const QuantizeRows c) {
  const std::int64_t row = blockIdx.x;
  unsigned most = 0;
  for (std::int64_t part = 0; part < c.parts; ++part)
    most = max(most, c.largest[part * c.rows + row]);
  float scale = __uint_as_float(0x7fc00000u), inverse = scale;
  if (most < 0x7f800000u) {
    const float range = fmaxf(__uint_as_float(most), kSmallestRange);
    scale = range / kLargestCode<kE4m3>, inverse = kLargestCode<kE4m3> / range;
  }
  if (threadIdx.x == 0) c.scales[row] = scale;
  const T* const x = static_cast<const T*>(c.x) + row * c.columns;
  std::uint8_t* const to = c.values + row * c.columns;
  for (std::int64_t i = std::int64_t{threadIdx.x} * kEach; i < c.columns; i += kThreads * kEach) {
    const int left = static_cast<int>(min(c.columns - i, std::int64_t{kEach}));
    float v[kEach];
    load_row<T, kVector>(x + i, left, v);
    unsigned words[4] = {};
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      words[j / 4] |= code_of<kE4m3>(v[j] * inverse) << 8 * (j % 4);
    store_pack<std::uint8_t, kVector>(to + i, {words[0], words[1], words[2], words[3]}, left);
  }
}

template <class T, bool kVector, bool kE4m3>
__global__ void __launch_bounds__(kThreads) dequantize_rows_kernel(const QuantizeRows c) {
  const std::int64_t row = blockIdx.x;
  const float scale = c.scales[row];
  const std::uint8_t* const codes = c.values + row * c.columns;
  T* const x = static_cast<T*>(c.x) + row * c.columns;
  for (std::int64_t i = std::int64_t{threadIdx.x} * kEach; i < c.columns; i += kThreads * kEach) {
    const int left = static_cast<int>(min(c.columns - i, std::int64_t{kEach}));
    const uint4 four = load_pack<std::uint8_t, kVector>(codes + i, left);
    const unsigned words[4] = {four.x, four.y, four.z, four.w};
    float v[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      v[j] = scale * number_of<kE4m3>(words[j / 4] >> 8 * (j % 4) & 0xffu);
    store_row<T, kVector>(x + i, left, v);
  }
}

bool in_range(const QuantizeRows& c) {
  return c.rows >= 0 && c.rows <= 0x7fffffff && c.columns >= 0 && c.parts >= 0;
}

template <class... Parameters>
int launch_rows(void (*kernel)(Parameters...), const QuantizeRows& c, cudaStream_t stream) {
  return launch(kernel, dim3(static_cast<unsigned>(c.rows)), kThreads, 0, stream, c);
}

bool wide(const QuantizeRows& c) {
  return c.columns % kEach == 0 && aligned_to_16(c.x, c.values);
}

}  // namespace

int largest_of_rows(const QuantizeRows& c, CUstream_st* stream) {
  if (!in_range(c)) return cudaErrorInvalidValue;
  const auto run = [&]<class T>(T) {
    return launch_rows(wide(c) ? largest_rows_kernel<T, true> : largest_rows_kernel<T, false>, c,
                       stream);
  };
  return c.type == Type::bf16 ? run(__nv_bfloat16{}) : run(float{});
}

int quantize_rows(const QuantizeRows& c, CUstream_st* stream) {
  if (!in_range(c)) return cudaErrorInvalidValue;
  const auto run = [&]<class T>(T) {
    if (c.e4m3)
      return launch_rows(
          wide(c) ? quantize_rows_kernel<T, true, true> : quantize_rows_kernel<T, false, true>, c,
          stream);
    return launch_rows(
        wide(c) ? quantize_rows_kernel<T, true, false> : quantize_rows_kernel<T, false, false>, c,
        stream);
  };
  return c.type == Type::bf16 ? run(__nv_bfloat16{}) : run(float{});
}

int dequantize_rows(const QuantizeRows& c, CUstream_st* stream) {
  if (!in_range(c)) return cudaErrorInvalidValue;
  const auto run = [&]<class T>(T) {
    if (c.e4m3)
      return launch_rows(
          wide(c) ? dequantize_rows_kernel<T, true, true> : dequantize_rows_kernel<T, false, true>,
          c, stream);
    return launch_rows(
        wide(c) ? dequantize_rows_kernel<T, true, false> : dequantize_rows_kernel<T, false, false>,
        c, stream);
  };
  return c.type == Type::bf16 ? run(__nv_bfloat16{}) : run(float{});
}

}  // namespace vfm::kernels
