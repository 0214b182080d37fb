// The scale of FP8 codes on the CPU, for quantize.h and attention in FP8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/float8.h"
#include "base/half.h"

namespace vfm::ops {

/// x is about scale * code; code = x * inverse, rounded.
struct Fp8Scale {
  float scale, inverse;
};

/// The bits of |x|. As whole numbers they are ordered as the values are, with infinity and NaN
/// above all.
inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
}

/// Computes the scale from the bits of the largest magnitude. The operations are the GPU's, so the
/// bits are the same.
inline Fp8Scale fp8_scale(std::uint32_t largest) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (largest >= 0x7f800000u) return {kNan, kNan};
  const float range = std::max(std::bit_cast<float>(largest), 0x1p-40f);
  return {range / kLargestF8, kLargestF8 / range};
}

inline float widened(float x) {
  return x;
}
inline float widened(std::uint16_t bf16) {
  return bfloat16_to_float(bf16);
}

}  // namespace vfm::ops
