// The part of CUDA's runtime header that kernels' own code uses, for the emulation: qualifiers,
// vectors, barriers and exchanges, arithmetic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "emulation.h"

#define VFM_EMULATION 1

#define __global__
#define __device__
#define __host__
// Always, so that an access has its own place in the program wherever it is inlined to.
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__
#define __shared__ static
#define __constant__ static const
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

inline void __syncthreads() {
  vfm::emulation::wait_for_block();
}
inline int __syncthreads_or(int predicate) {
  return vfm::emulation::any_of_block(predicate != 0);
}
inline void __syncwarp(unsigned = 0xffffffffu) {
  vfm::emulation::wait_for_warp(true);
}
template <class T>
__forceinline__ T __shfl_sync(unsigned, T value, int lane) {
  vfm::emulation::exchange(&value, sizeof value, lane & 31);
  return value;
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int with) {
  return __shfl_sync(mask, value, static_cast<int>(threadIdx.x % 32) ^ with);
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return __shfl_sync(mask, value, static_cast<int>(lane + by < 32 ? lane + by : lane));
}

// What the compiler may believe is checked here.
#define __builtin_assume(what)     \
  do                               \
    if (!(what)) __builtin_trap(); \
  while (false)
inline bool __isGlobal(const void* p) {
  return p != nullptr;
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __int_as_float(int bits) {
  return std::bit_cast<float>(bits);
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline float rsqrtf(float x) {
  return 1.f / std::sqrt(x);
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
__forceinline__ unsigned atomicMax(unsigned* at, unsigned value) {
  return vfm::emulation::atomic_max(at, value);
}
// A value that the compiler does not see through, and so joins with nothing.
inline float opaque(float value) {
  asm("" : "+m"(value));
  return value;
}
// Never part of a fused multiply-add.
inline float __fadd_rn(float x, float y) {
  return opaque(opaque(x) + opaque(y));
}
inline float __fsub_rn(float x, float y) {
  return opaque(opaque(x) - opaque(y));
}
inline float __fmul_rn(float x, float y) {
  return opaque(opaque(x) * opaque(y));
}
inline float __fdiv_rn(float x, float y) {
  return opaque(opaque(x) / opaque(y));
}
template <class T>
__forceinline__ T __ldg(const T* p) {
  return *p;
}
using std::max;
using std::min;
