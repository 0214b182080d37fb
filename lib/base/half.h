// 16-bit floats: IEEE binary16 (npy '<f2', latents and embeddings on disk) and bfloat16 (compute).
// Rounding is to nearest, ties to even. Overflow of binary16 becomes infinity. NaN remains NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace vfm {

std::uint16_t float_to_half(float value) noexcept;
float half_to_float(std::uint16_t bits) noexcept;

inline float bfloat16_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
inline std::uint16_t float_to_bfloat16(float value) noexcept {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  bits += 0x7fffu + (bits >> 16 & 1u);
  return static_cast<std::uint16_t>(bits >> 16);
}

/// Convert each element. Both spans must have the same length.
void floats_to_halves(std::span<const float> in, std::span<std::uint16_t> out) noexcept;
void halves_to_floats(std::span<const std::uint16_t> in, std::span<float> out) noexcept;

}  // namespace vfm
