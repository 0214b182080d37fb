// 8-bit floats of the type E4M3: a sign bit, 4 bits of exponent (bias 7), 3 bits of mantissa. Files
// may also have E5M2, with 5 bits of exponent (bias 15), infinities, and several NaN.
//
// The largest value is 448. E4M3 has no infinity, and one NaN for each sign. Values of at least
// 2^-6 are normal, and their relative rounding error is at most 2^-4. Smaller values are multiples
// of 2^-9. Rounding is to nearest, ties to even. Values above 448 and infinity become 448. NaN
// remains NaN. The GPU instruction cvt.rn.satfinite has the same results. Source: Micikevicius et
// al., "FP8 formats for deep learning" (2022). Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace vfm {

inline constexpr float kLargestF8 = 448;

inline std::uint8_t float_to_f8e4m3(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude > 0x43e00000u) return static_cast<std::uint8_t>(sign | 0x7eu);  // above 448
  if (magnitude < 0x3c800000u) {  // below 2^-6; floats from 2^14 on are multiples of 2^-9
    const float rounded = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<std::uint8_t>(
        sign | (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0x1p14f)));
  }
  const std::uint32_t rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
  return static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
}

inline float f8e4m3_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = std::uint32_t{code & 0x80u} << 24, magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) {  // subnormal value: exactly magnitude * 2^-9
    const float value = static_cast<float>(magnitude) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (magnitude + (120u << 3)) << 20);
}

/// The value of an E5M2.
inline float f8e5m2_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = std::uint32_t{code & 0x80u} << 24, magnitude = code & 0x7fu;
  if (magnitude >= 0x7cu) {
    const std::uint32_t mantissa = (magnitude & 3u) << 21;
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa ? mantissa | 0x400000u : 0u));
  }
  if (magnitude < 4) {  // subnormal value: exactly magnitude * 2^-16
    const float value = static_cast<float>(magnitude) * 0x1p-16f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (magnitude + (112u << 2)) << 21);
}

}  // namespace vfm
