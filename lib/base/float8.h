// 8-bit floats of the type E4M3: a sign bit, 4 bits of exponent (bias 7), 3 bits of mantissa.
//
// The largest value is 448; E4M3 has no infinity, and one NaN for each sign. Values from 2^-6 on
// are normal, and rounding changes them by at most 2^-4 of their value. Smaller values are
// multiples of 2^-9. Rounding is to nearest, ties to even. Values beyond 448, also infinity, become
// 448; NaN stays NaN. A GPU's cvt.rn.satfinite does the same. Source: Micikevicius et al., "FP8
// formats for deep learning" (2022). Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace vfm {

/// The largest value of E4M3.
inline constexpr float kLargestF8 = 448;

inline std::uint8_t float_to_f8e4m3(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude > 0x43e00000u) return static_cast<std::uint8_t>(sign | 0x7eu);  // above 448
  if (magnitude < 0x3c800000u) {  // below 2^-6: floats from 2^14 on are 2^-9 apart
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
  if (magnitude < 8) {  // subnormal: the value is magnitude * 2^-9 exactly
    const float value = static_cast<float>(magnitude) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (magnitude + (120u << 3)) << 20);
}

}  // namespace vfm
