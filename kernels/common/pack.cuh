// Loads and stores 16 bytes at a time, four f32 or eight bf16, if memory is aligned for that, and
// element by element otherwise. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <bit>
#include <cstdint>

#include "common/vector.cuh"

namespace vfm::kernels {

/// Number of elements of T in 16 bytes.
template <class T>
inline constexpr int kPack = 16 / sizeof(T);

/// 16 bytes of T in their memory layout.
template <class T>
struct alignas(16) Pack {
  T v[kPack<T>];
};

/// Loads the first `count` elements, at most kPack, followed by zeros, in their memory layout.
template <class T, bool kVector>
__device__ __forceinline__ uint4 load_pack(const T* p, int count) {
  if constexpr (kVector) {
    return count > 0 ? *reinterpret_cast<const uint4*>(p) : uint4{0, 0, 0, 0};
  } else {
    Pack<T> pack{};
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i)
      if (i < count) pack.v[i] = p[i];
    return std::bit_cast<uint4>(pack);
  }
}

/// Stores the first `count` elements.
template <class T, bool kVector>
__device__ __forceinline__ void store_pack(T* p, uint4 words, int count) {
  if constexpr (kVector) {
    if (count > 0) *reinterpret_cast<uint4*>(p) = words;
  } else {
    const auto pack = std::bit_cast<Pack<T>>(words);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i)
      if (i < count) p[i] = pack.v[i];
  }
}

/// unpack() converts 16 bytes to f32: four of f32, or eight of bf16. pack() converts them back.
__device__ __forceinline__ void unpack(uint4 words, float (&v)[4]) {
  v[0] = __uint_as_float(words.x), v[1] = __uint_as_float(words.y);
  v[2] = __uint_as_float(words.z), v[3] = __uint_as_float(words.w);
}
__device__ __forceinline__ void unpack(uint4 words, float (&v)[8]) {
  v[0] = __uint_as_float(words.x << 16), v[1] = __uint_as_float(words.x & 0xffff0000u);
  v[2] = __uint_as_float(words.y << 16), v[3] = __uint_as_float(words.y & 0xffff0000u);
  v[4] = __uint_as_float(words.z << 16), v[5] = __uint_as_float(words.z & 0xffff0000u);
  v[6] = __uint_as_float(words.w << 16), v[7] = __uint_as_float(words.w & 0xffff0000u);
}

__device__ __forceinline__ unsigned pair_bits(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&two);
}
__device__ __forceinline__ uint4 pack(const float (&v)[4]) {
  return {__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
          __float_as_uint(v[3])};
}
__device__ __forceinline__ uint4 pack(const float (&v)[8]) {
  return {pair_bits(v[0], v[1]), pair_bits(v[2], v[3]), pair_bits(v[4], v[5]),
          pair_bits(v[6], v[7])};
}

/// Rounds numbers to T, as storing and loading them would.
template <class T, int kCount>
__device__ __forceinline__ void round_to(float (&v)[kCount]) {
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const unsigned two = pair_bits(v[i], v[i + 1]);
      v[i] = __uint_as_float(two << 16), v[i + 1] = __uint_as_float(two & 0xffff0000u);
    }
  }
}

/// Loads the first `count` floats, followed by zeros.
template <bool kVector, int kCount>
__device__ __forceinline__ void load_floats(const float* p, int count, float (&v)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    float4 four = {0, 0, 0, 0};
    if constexpr (kVector) {
      if (i < count) four = load4(p + i);
    } else {
      if (i < count) four.x = p[i];
      if (i + 1 < count) four.y = p[i + 1];
      if (i + 2 < count) four.z = p[i + 2];
      if (i + 3 < count) four.w = p[i + 3];
    }
    v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
  }
}

}  // namespace vfm::kernels
