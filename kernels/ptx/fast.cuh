// Functions that the GPU computes approximately in one instruction.
// tests/kernels/emulation/ptx/fast.cuh has the same functions for the host. Device code only.
// Source: PTX ISA, "ex2" and "rcp".
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

/// 2^x to 2 units in the last place; results below 2^-126 are zero; NaN stays NaN.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x to 1 unit in the last place; zero for numbers beyond 2^126; NaN stays NaN.
__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace vfm::kernels
