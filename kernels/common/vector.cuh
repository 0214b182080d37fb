// Loads and stores four elements at a time: f32 or bf16 in memory, f32 in registers. Device code
// only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace vfm::kernels {

__device__ __forceinline__ float4 load4(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}

__device__ __forceinline__ float4 load4(const __nv_bfloat16* p) {
  const uint2 words = *reinterpret_cast<const uint2*>(p);
  return {__uint_as_float(words.x << 16), __uint_as_float(words.x & 0xffff0000u),
          __uint_as_float(words.y << 16), __uint_as_float(words.y & 0xffff0000u)};
}

__device__ __forceinline__ void store4(float* p, float4 v) {
  *reinterpret_cast<float4*>(p) = v;
}

__device__ __forceinline__ void store4(__nv_bfloat16* p, float4 v) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y),
                       high = __floats2bfloat162_rn(v.z, v.w);
  uint2 words;
  words.x = *reinterpret_cast<const std::uint32_t*>(&low);
  words.y = *reinterpret_cast<const std::uint32_t*>(&high);
  *reinterpret_cast<uint2*>(p) = words;
}

}  // namespace vfm::kernels
