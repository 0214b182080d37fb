// kernels/ptx/fast.cuh for the emulation: as far from right as is said there, one way or the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vfm::kernels {

namespace emulated {

/// `y` moved by some units in the last place, up or down with the last bit of `x`, but for exact
/// powers of two; zero if it is below the smallest normal number.
inline float nearly(float y, float x, int units) {
  if (std::abs(y) < std::numeric_limits<float>::min()) return std::copysign(0.f, y);
  const auto bits = std::bit_cast<std::uint32_t>(y);
  if (!std::isfinite(y) || bits << 9 == 0) return y;
  const bool up = std::bit_cast<std::uint32_t>(x) % 2 == 0;
  return y + (up ? 1.f : -1.f) * static_cast<float>(units) *
                 std::ldexp(1.f, std::ilogb(y) - std::numeric_limits<float>::digits + 1);
}

}  // namespace emulated

inline float fast_exp2(float x) {
  return emulated::nearly(std::exp2(x), x, 2);
}
inline float fast_reciprocal(float x) {
  return emulated::nearly(1.f / x, x, 1);
}

}  // namespace vfm::kernels
