// Loops and sums over a row for CPU kernels. A sum has sixteen parts, whatever the width of the
// processor's registers, so instruction sets that round alike give the same bits. Include only in
// x_cpu.cc (see ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

/// Calls body(V{}, i): with V = Native in steps of kWidth for each full group of sixteen elements,
/// then with V = float for each remaining element.
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

/// Sixteen partial sums.
struct Sums {
  // Aligned, as references to Native would lose its alignment attribute.
  typedef float Aligned __attribute__((vector_size(4 * kWidth)));
  Aligned part[16 / kWidth] = {};
};
/// Adds the sixteen sums as a tree.
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

/// Returns the sum of body(V{}, i) over a row. OpenMP's reduction clause would add the lanes one
/// after the other.
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
/// Two sums over a row: body(V{}, i, first, second) adds to both.
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
