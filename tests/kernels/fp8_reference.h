// E4M3 by its definition, for the tests of kernels: the nearest of its values is looked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>

#include "kernel_test.h"

namespace vfm::test {

/// Values of the codes 0 to 0x7e, rising.
inline const std::array<double, 127>& fp8_values() {
  static const std::array<double, 127> values = [] {
    std::array<double, 127> made{};
    for (int code = 0; code < 127; ++code)
      made[static_cast<std::size_t>(code)] =
          code < 8 ? std::ldexp(code, -9) : std::ldexp(8 + code % 8, code / 8 - 10);
    return made;
  }();
  return values;
}

inline double fp8_value(std::uint8_t code) {
  if ((code & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  return (code & 0x80 ? -1 : 1) * fp8_values()[code & 0x7f];
}

/// To the nearest, ties to the even code, at most 448.
inline std::uint8_t fp8_code_of(float x) {
  if (std::isnan(x)) return 0x7f;
  const double size = std::abs(static_cast<double>(x));
  const auto& values = fp8_values();
  const auto above = std::lower_bound(values.begin(), values.end(), size);
  int code = static_cast<int>(above - values.begin());
  if (above == values.end()) {
    code = 126;
  } else if (*above != size) {
    const double up = *above - size, down = size - values[static_cast<std::size_t>(code - 1)];
    if (down < up || (down == up && (code - 1) % 2 == 0)) --code;
  }
  return static_cast<std::uint8_t>(code | (std::signbit(x) ? 0x80 : 0));
}

/// The scale of numbers whose largest magnitude is `largest`, and what they are multiplied with.
struct ReferenceScale {
  float scale, inverse;
};
inline ReferenceScale fp8_scale_of(float largest) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  if (!std::isfinite(largest)) return {none, none};
  const float range = std::max(largest, 0x1p-40f);
  return {range / 448, 448 / range};
}

}  // namespace vfm::test
