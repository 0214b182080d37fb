// bfloat16 for the emulation: round to nearest, ties to even, as the hardware converts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  std::uint16_t bits = 0;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) {
    const unsigned u = __float_as_uint(value);
    bits =
        value != value ? 0x7fff : static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  explicit operator float() const { return __uint_as_float(unsigned{bits} << 16); }
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  return static_cast<float>(value);
}
inline __nv_bfloat16 __float2bfloat16(float value) {
  return __nv_bfloat16(value);
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return __nv_bfloat16(value);
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline float __low2float(__nv_bfloat162 v) {
  return static_cast<float>(v.x);
}
inline float __high2float(__nv_bfloat162 v) {
  return static_cast<float>(v.y);
}
