// Loops over a row for the CPU kernels, and sums over it: in sixteen parts whatever the processor's
// registers hold, so that instruction sets that round alike give the same bits. Include it in
// x_cpu.cc only (see ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

/// Calls body(V{}, i) for sixteen elements at a time, V = Native, then one by one, V = float.
template <class Body>
VFM_INLINE void for_lanes(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
    for (int k = 0; k < 16; k += kWidth)
      body(Native{}, i + k);
  for (; i < n; ++i)
    body(0.f, i);
}

/// Sixteen sums, whatever registers hold.
struct Sums {
  // Aligned, as references to a type with the attribute of Native would lose it.
  typedef float Aligned __attribute__((vector_size(4 * kWidth)));
  Aligned part[16 / kWidth] = {};
};
/// Of all sixteen, as a tree.
VFM_INLINE float total_of(const Sums& sums) {
  float room[16];
#pragma GCC unroll 4
  for (int k = 0; k < 16 / kWidth; ++k)
    store(room + k * kWidth, sums.part[k]);
#pragma GCC unroll 4
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      room[i] += room[i + half];
  return room[0];
}

/// The sum of body(V{}, i) over a row. (A reduction clause of OpenMP adds the lanes one after the
/// other.)
template <class Body>
VFM_INLINE float sum_lanes(std::int64_t n, Body body) {
  Sums sums;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
    for (int k = 0; k < 16 / kWidth; ++k)
      sums.part[k] += body(Native{}, i + k * kWidth);
  float sum = total_of(sums);
  for (; i < n; ++i)
    sum += body(0.f, i);
  return sum;
}

struct TwoSums {
  float first, second;
};
/// The same with body(V{}, i, first, second), which adds to both.
template <class Body>
VFM_INLINE TwoSums two_sums(std::int64_t n, Body body) {
  Sums first, second;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
    for (int k = 0; k < 16 / kWidth; ++k)
      body(Native{}, i + k * kWidth, first.part[k], second.part[k]);
  TwoSums sums{total_of(first), total_of(second)};
  for (; i < n; ++i)
    body(0.f, i, sums.first, sums.second);
  return sums;
}

}  // namespace vfm::ops::VFM_ISA
