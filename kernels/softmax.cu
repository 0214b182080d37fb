// Rows are read twice, the second time from the cache as a rule: a row of a whole frame's keys does
// not fit into a block's registers.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "softmax.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;

// Four elements, or one.
template <bool kVector, class T>
__device__ __forceinline__ float4 load(const T* p) {
  if constexpr (kVector) {
    return load4(p);
  } else {
    return {static_cast<float>(*p), 0, 0, 0};
  }
}
template <bool kVector, class T>
__device__ __forceinline__ void store(T* p, float4 v) {
  if constexpr (kVector) {
    store4(p, v);
  } else {
    *p = T(v.x);
  }
}
// e^(factor (v - top)).
template <bool kVector>
__device__ __forceinline__ float4 powers(float4 v, float top, float factor) {
  if constexpr (kVector) {
    return {expf(factor * (v.x - top)), expf(factor * (v.y - top)), expf(factor * (v.z - top)),
            expf(factor * (v.w - top))};
  } else {
    return {expf(factor * (v.x - top)), 0, 0, 0};
  }
}
__device__ __forceinline__ float sum4(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const float* scores, T* out, int columns, float scale) {
  __shared__ float shared[kThreads / 32];
  constexpr int kWidth = kVector ? 4 : 1, kStep = kThreads * kWidth;
  const float* const s = scores + std::int64_t{blockIdx.x} * columns;
  T* const p = out + std::int64_t{blockIdx.x} * columns;
  float top = -INFINITY, sum = 0;  // of what this thread has seen
  for (int i = static_cast<int>(threadIdx.x) * kWidth; i < columns; i += kStep) {
    const float4 v = load<kVector>(s + i);
    const float here = kVector ? fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)) : v.x;
    if (here == -INFINITY) continue;  // it adds nothing, and is no maximum to come from
    if (here > top) {
      sum *= expf(scale * (top - here));
      top = here;
    }
    sum += sum4(powers<kVector>(v, top, scale));
  }
  const float all = block_max<kThreads>(top, shared);
  // Threads that saw nothing have no maximum to come from.
  const float mine = sum == 0 ? 0.f : sum * expf(scale * (top - all));
  const float inverse = 1.f / block_sum<kThreads>(mine, shared);
  for (int i = static_cast<int>(threadIdx.x) * kWidth; i < columns; i += kStep) {
    const float4 v = powers<kVector>(load<kVector>(s + i), all, scale);
    store<kVector>(p + i, {v.x * inverse, v.y * inverse, v.z * inverse, v.w * inverse});
  }
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(const T* p, const float* dp, T* ds, int columns, float scale) {
  __shared__ float shared[kThreads / 32];
  constexpr int kWidth = kVector ? 4 : 1, kStep = kThreads * kWidth;
  const std::int64_t row = std::int64_t{blockIdx.x} * columns;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) * kWidth; i < columns; i += kStep) {
    const float4 a = load<kVector>(p + row + i), b = load<kVector>(dp + row + i);
    sum += sum4({a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w});
  }
  const float mean = block_sum<kThreads>(sum, shared);
  for (int i = static_cast<int>(threadIdx.x) * kWidth; i < columns; i += kStep) {
    const float4 a = load<kVector>(p + row + i), b = load<kVector>(dp + row + i);
    store<kVector>(ds + row + i, {scale * a.x * (b.x - mean), scale * a.y * (b.y - mean),
                                  scale * a.z * (b.z - mean), scale * a.w * (b.w - mean)});
  }
}

bool refused(std::int64_t rows, std::int64_t columns) {
  return rows < 0 || columns < 0 || rows > 0x7fffffff || columns > 0x7fffffff - 4 * kThreads;
}

// Every row is aligned for four elements at a time.
bool vector(std::int64_t columns, const void* a, const void* b, const void* c) {
  return columns % 4 == 0 && aligned_to_16(a, b, c);
}

}  // namespace

int softmax_rows(const float* s, Type type, void* p, std::int64_t rows, std::int64_t columns,
                 float scale, CUstream_st* stream) {
  if (refused(rows, columns)) return cudaErrorInvalidValue;
  if (columns == 0) return cudaSuccess;
  const bool four = vector(columns, s, p, nullptr);
  const auto run = [&]<class T>(T) {
    return launch(four ? forward_kernel<T, true> : forward_kernel<T, false>,
                  dim3(static_cast<unsigned>(rows)), kThreads, 0, stream, s, static_cast<T*>(p),
                  static_cast<int>(columns), scale);
  };
  return type == Type::bf16 ? run(Bf16{}) : run(float{});
}

int softmax_rows_backward(Type type, const void* p, const float* dp, void* ds, std::int64_t rows,
                          std::int64_t columns, float scale, CUstream_st* stream) {
  if (refused(rows, columns)) return cudaErrorInvalidValue;
  if (columns == 0) return cudaSuccess;
  const bool four = vector(columns, p, dp, ds);
  const auto run = [&]<class T>(T) {
    return launch(four ? backward_kernel<T, true> : backward_kernel<T, false>,
                  dim3(static_cast<unsigned>(rows)), kThreads, 0, stream, static_cast<const T*>(p),
                  dp, static_cast<T*>(ds), static_cast<int>(columns), scale);
  };
  return type == Type::bf16 ? run(Bf16{}) : run(float{});
}

}  // namespace vfm::kernels
