// Conversion to E4M3, the 8-bit float of lib/base/float8.h, and products of E4M3 on tensor cores,
// as functions.
//
// The instructions exist from compute capability 8.9 on. On older GPUs the functions abort the
// kernel, so launchers must check fp8_code() (common/fp8.cuh) first.
//
// A warp multiplies a [16, 32] by b [32, 8] and adds to c [16, 8], f32. With group = lane / 4 and
// t = lane % 4, a lane holds
//   c: rows group and group + 8 (elements 0, 1 and 2, 3), columns 2 t and 2 t + 1;
//   a: rows group, group + 8, group, group + 8, columns 4 t to 4 t + 3, in the last two words + 16;
//   b: column group, rows 4 t to 4 t + 3, in the second word + 16.
// In bytes these places equal those of the bf16 product (mma.cuh), so matrices are loaded alike.
// Source: PTX ISA, "Matrix fragments for mma.m16n8k32" and "cvt".
// tests/kernels/emulation/ptx/fp8.cuh has the same functions for the host. Device code only.
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

/// c += a b.
__device__ __forceinline__ void multiply_add_e4m3(float (&c)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}

}  // namespace vfm::kernels
