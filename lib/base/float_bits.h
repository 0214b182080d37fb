// Converts a float to its bits and back, in files that are compiled once per instruction set.
//
// std::bit_cast is not safe in such files. If a call is not inlined, the linker keeps one copy of
// the function for the whole program, perhaps for an instruction set that this machine lacks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm {

__attribute__((always_inline, unused)) static inline float bits_to_float(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
__attribute__((always_inline, unused)) static inline std::uint32_t float_to_bits(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace vfm
