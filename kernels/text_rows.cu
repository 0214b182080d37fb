// A block has a row, or a part of its width. Products and sums are rounded one by one, as the CPU
// rounds them.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "text_rows.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostParts = 65535;  // of a grid's second axis

// Pair i of head h is at h 2 half + i, and half further on.
__global__ void __launch_bounds__(kThreads)
    turn_heads_kernel(float* x, std::int64_t width, int pairs, int half, const float* cosines,
                      const float* sines) {
  const std::int64_t row = blockIdx.x;
  float* const to = x + row * width;
  const float* const c = cosines + row * half;
  const float* const s = sines + row * half;
  const int step = static_cast<int>(gridDim.y) * kThreads;
  for (int pair = static_cast<int>(blockIdx.y * kThreads + threadIdx.x); pair < pairs;
       pair += step) {
    const int i = pair % half, at = pair / half * 2 * half + i;
    const float a = to[at], b = to[at + half];
    to[at] = __fadd_rn(__fmul_rn(a, c[i]), -__fmul_rn(b, s[i]));
    to[at + half] = __fadd_rn(__fmul_rn(b, c[i]), __fmul_rn(a, s[i]));
  }
}

// Here x, width and the tables count pairs.
__global__ void __launch_bounds__(kThreads)
    turn_neighbours_kernel(float2* x, std::int64_t width, int pairs, int half,
                           const float2* cosines, const float2* sines) {
  const std::int64_t row = blockIdx.x;
  float2* const to = x + row * width;
  const float2* const c = cosines + row * half;
  const float2* const s = sines + row * half;
  const int step = static_cast<int>(gridDim.y) * kThreads;
  for (int pair = static_cast<int>(blockIdx.y * kThreads + threadIdx.x); pair < pairs;
       pair += step) {
    const float2 v = to[pair], cosine = c[pair % half], sine = s[pair % half];
    to[pair] = make_float2(__fadd_rn(__fmul_rn(v.x, cosine.x), -__fmul_rn(v.y, sine.x)),
                           __fadd_rn(__fmul_rn(v.y, cosine.y), __fmul_rn(v.x, sine.y)));
  }
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads)
    add_bias_kernel(T* y, std::int64_t stride, const float* bias, std::int64_t width) {
  constexpr int kCount = kVector ? kPack<T> : 1;
  T* const to = y + std::int64_t{blockIdx.x} * stride;
  const std::int64_t step = std::int64_t{gridDim.y} * kThreads * kCount;
  std::int64_t i = (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount;
  for (; i < width; i += step) {
    float v[kPack<T>], add[kPack<T>];
    unpack(load_pack<T, kVector>(to + i, kCount), v);
    load_floats<kVector>(bias + i, kCount, add);
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      v[k] += add[k];
    store_pack<T, kVector>(to + i, pack(v), kCount);
  }
}

dim3 grid_of(std::int64_t rows, std::int64_t elements) {
  const std::int64_t parts = (elements + kThreads - 1) / kThreads;
  return {static_cast<unsigned>(rows), static_cast<unsigned>(std::min(parts, kMostParts))};
}

bool heads_fit(std::int64_t rows, std::int64_t width, int heads, int half) {
  const std::int64_t pairs = std::int64_t{heads} * half;
  return rows >= 0 && rows <= 0x7fffffff && heads >= 0 && half >= 0 && 2 * pairs <= width &&
         pairs <= 0x3fffffff;
}

template <class T>
int add_bias_to(T* y, std::int64_t rows, std::int64_t stride, const float* bias, std::int64_t width,
                cudaStream_t stream) {
  const bool many = aligned_to_16(y, bias) && stride % 8 == 0 && width % 8 == 0;
  return launch(many ? add_bias_kernel<T, true> : add_bias_kernel<T, false>,
                grid_of(rows, many ? width / kPack<T> : width), kThreads, 0, stream, y, stride,
                bias, width);
}

}  // namespace

int turn_heads(float* x, std::int64_t rows, std::int64_t width, int heads, int half,
               const float* cosines, const float* sines, CUstream_st* stream) {
  const std::int64_t pairs = std::int64_t{heads} * half;
  if (!heads_fit(rows, width, heads, half)) return cudaErrorInvalidValue;
  return launch(turn_heads_kernel, grid_of(rows, pairs), kThreads, 0, stream, x, width,
                static_cast<int>(pairs), half, cosines, sines);
}

int turn_neighbours(float* x, std::int64_t rows, std::int64_t width, int heads, int half,
                    const float* cosines, const float* sines, CUstream_st* stream) {
  const std::int64_t pairs = std::int64_t{heads} * half;
  if (!heads_fit(rows, width, heads, half) || width % 2 != 0) return cudaErrorInvalidValue;
  return launch(turn_neighbours_kernel, grid_of(rows, pairs), kThreads, 0, stream,
                reinterpret_cast<float2*>(x), width / 2, static_cast<int>(pairs), half,
                reinterpret_cast<const float2*>(cosines), reinterpret_cast<const float2*>(sines));
}

int add_bias(Type type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
             std::int64_t width, CUstream_st* stream) {
  if (rows < 0 || rows > 0x7fffffff || width < 0 || width > stride) return cudaErrorInvalidValue;
  return type == Type::bf16
             ? add_bias_to(static_cast<__nv_bfloat16*>(y), rows, stride, bias, width, stream)
             : add_bias_to(static_cast<float*>(y), rows, stride, bias, width, stream);
}

}  // namespace vfm::kernels
