// kernels/ptx/fp8.cuh for the emulation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../cuda_runtime.h"
#include "lib/base/float8.h"

namespace vfm::kernels {

inline unsigned pack_e4m3(float low, float high) {
  return float_to_f8e4m3(low) | static_cast<unsigned>(float_to_f8e4m3(high)) << 8;
}

}  // namespace vfm::kernels
