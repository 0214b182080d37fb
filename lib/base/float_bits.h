// A float as its bits and back, for files that are compiled once per instruction set.
//
// Not std::bit_cast: an inline function of external linkage that such a file does not inline would
// be one for the whole program, compiled for whichever set the linker met first.
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
