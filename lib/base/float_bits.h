// Converts a float to its bits and back, in files that are compiled once for each instruction set.
//
// In such files, std::bit_cast is not safe: the linker may keep one copy of it for the whole
// program, compiled for an instruction set that this machine lacks.
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
