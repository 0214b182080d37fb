// Compiled once per instruction set (lib/dist/meson.build), into a namespace of that name: so it
// includes nothing with inline functions of external linkage.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "base/float_bits.h"

namespace vfm::dist::VFM_ISA {
namespace {

constexpr std::size_t kBlock = 1024;  // elements, whose sums stay in the nearest cache

inline float widen(float value) {
  return value;
}
inline float widen(std::uint16_t bits) {
  return bits_to_float(std::uint32_t{bits} << 16);
}
inline void put(float* to, float value) {
  *to = value;
}
// base/half.h's rounding, as a choice of two numbers and not of two ways.
inline void put(std::uint16_t* to, float value) {
  const std::uint32_t bits = float_to_bits(value);
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u), nan = bits | 0x400000u;
  const std::uint32_t chosen = (bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
  *to = static_cast<std::uint16_t>(chosen >> 16);
}

template <class Value>
inline void add_up(const Value* const* parts, std::size_t ranks, Value* to, std::size_t count) {
  alignas(64) float totals[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = count - begin < kBlock ? count - begin : kBlock;
    // The first is taken as it is: 0 + -0 would be 0.
    for (std::size_t i = 0; i < n; ++i)
      totals[i] = widen(parts[0][begin + i]);
    for (std::size_t part = 1; part < ranks; ++part)
      for (std::size_t i = 0; i < n; ++i)
        totals[i] += widen(parts[part][begin + i]);
    for (std::size_t i = 0; i < n; ++i)
      put(to + begin + i, totals[i]);
  }
}

}  // namespace

void add_floats(const float* const* parts, std::size_t ranks, float* to, std::size_t count) {
  add_up(parts, ranks, to, count);
}

void add_bfloats(const std::uint16_t* const* parts, std::size_t ranks, std::uint16_t* to,
                 std::size_t count) {
  add_up(parts, ranks, to, count);
}

}  // namespace vfm::dist::VFM_ISA
