// kernels/ptx/fp8.cuh for the emulation: what a lane holds is told there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../cuda_runtime.h"
#include "../matrices.h"
#include "lib/base/float8.h"

namespace vfm::kernels {

inline unsigned pack_e4m3(float low, float high) {
  return float_to_f8e4m3(low) | static_cast<unsigned>(float_to_f8e4m3(high)) << 8;
}

__forceinline__ void multiply_add_e4m3(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                       unsigned b1) {
  const vfm::emulation::Sums sums = vfm::emulation::multiply_add_e4m3(
      {{c[0], c[1], c[2], c[3]}}, {{a[0], a[1], a[2], a[3]}}, b0, b1);
  c[0] = sums.v[0], c[1] = sums.v[1], c[2] = sums.v[2], c[3] = sums.v[3];
}

}  // namespace vfm::kernels
