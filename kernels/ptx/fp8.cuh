// Conversion to E4M3, the 8-bit float of lib/base/float8.h, as a function.
//
// The instruction exists from compute capability 8.9 on. On older GPUs the function aborts the
// kernel, so launchers must check fp8_code() (common/fp8.cuh) first.
// Source: PTX ISA, "cvt".
// tests/kernels/emulation/ptx/fp8.cuh has the same function for the host. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

/// Rounds two values to nearest, ties to even, and clamps them to +-448; `low` is in the low byte.
__device__ __forceinline__ unsigned pack_e4m3(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short both;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
  return both;
#else
  __trap();
  return 0;
#endif
}

}  // namespace vfm::kernels
