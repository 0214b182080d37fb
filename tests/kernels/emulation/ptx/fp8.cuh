// kernels/ptx/fp8.cuh for the emulation: what a lane holds is told there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "../emulation.h"
#include "lib/base/float8.h"

namespace vfm::kernels {

namespace emulated {

// An E4M3 of what a lane gave.
inline float small_element(int lane, int word, int byte) {
  const auto* bytes = static_cast<const unsigned char*>(vfm::emulation::published(lane));
  return f8e4m3_to_float(bytes[4 * word + byte]);
}

}  // namespace emulated

inline unsigned pack_e4m3(float low, float high) {
  return float_to_f8e4m3(low) | static_cast<unsigned>(float_to_f8e4m3(high)) << 8;
}

inline void multiply_add_e4m3(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned given[6] = {a[0], a[1], a[2], a[3], b0, b1};
  vfm::emulation::publish(given, sizeof given);
  const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, t = lane % 4;
  for (int k = 0; k < 32; ++k) {
    const int left = group * 4 + k % 16 / 4;
    for (int column = 0; column < 2; ++column) {
      const float b = emulated::small_element((2 * t + column) * 4 + k % 16 / 4, 4 + k / 16, k % 4);
      c[column] += emulated::small_element(left, k / 16 * 2, k % 4) * b;
      c[2 + column] += emulated::small_element(left, k / 16 * 2 + 1, k % 4) * b;
    }
  }
  vfm::emulation::wait_for_warp();
}

}  // namespace vfm::kernels
