// What CPU kernels (files compiled once per instruction set, see ops/cpu/isa.h) share: sixteen
// lanes, loads and stores of f32 and bf16, sums over a row. Include it in x_cpu.cc only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/float_bits.h"
#include "tensor/dtype.h"

// Lanes are only passed between functions that are inlined, so how they would be passed is no
// matter.
#pragma GCC diagnostic ignored "-Wpsabi"

#ifndef VFM_ISA
#define VFM_ISA base
#endif

namespace vfm::ops::VFM_ISA {

using bf16 = std::uint16_t;  // the upper half of an f32

/// Below this many elements, waking the other threads costs more than they save.
constexpr std::int64_t kAlone = 16384;

#define VFM_INLINE static inline __attribute__((always_inline, unused))

VFM_INLINE float load(const float* p) {
  return *p;
}
VFM_INLINE float load(const bf16* p) {
  return bits_to_float(std::uint32_t{*p} << 16);
}
VFM_INLINE void store(float* p, float value) {
  *p = value;
}
// To nearest, ties to even. A NaN stays one, except that with all mantissa bits set, which no
// arithmetic makes.
VFM_INLINE void store(bf16* p, float value) {
  const std::uint32_t bits = float_to_bits(value);
  *p = static_cast<bf16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// Calls body(T{}), T being the C++ type of `type`: float or bf16.
template <class Body>
VFM_INLINE void by_type(DType type, Body body) {
  type == DType::bf16 ? body(bf16{}) : body(float{});
}

/// Sixteen floats: one AVX-512 register, two of AVX2. Unaligned in memory.
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef std::uint32_t LaneBits __attribute__((vector_size(64), may_alias));
typedef bf16 LowLanes __attribute__((vector_size(32), aligned(2), may_alias));

/// Loads and stores of V = Lanes or V = float, so that one body serves the middle of a row and its
/// end.
template <class V>
VFM_INLINE V load_as(const float* p) {
  // Lanes by name: template arguments lose the attribute that allows any alignment.
  if constexpr (sizeof(V) == sizeof(float)) {
    return *p;
  } else {
    return *reinterpret_cast<const Lanes*>(p);
  }
}
template <class V>
VFM_INLINE V load_as(const bf16* p) {
  if constexpr (sizeof(V) == sizeof(float)) {
    return load(p);
  } else {
    return (Lanes)(__builtin_convertvector(*reinterpret_cast<const LowLanes*>(p), LaneBits) << 16);
  }
}
VFM_INLINE void store(float* p, Lanes value) {
  *reinterpret_cast<Lanes*>(p) = value;
}
VFM_INLINE void store(bf16* p, Lanes value) {
  const LaneBits bits = (LaneBits)value;
  *reinterpret_cast<LowLanes*>(p) =
      __builtin_convertvector((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, LowLanes);
}

/// The sum of all lanes, as a tree.
VFM_INLINE float sum_of(Lanes v) {
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return v[0];
}
VFM_INLINE float sum_of(float v) {
  return v;
}

/// Calls body(V{}, i) for i in steps of sixteen, V = Lanes, then one by one, V = float.
template <class Body>
VFM_INLINE void for_lanes(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    body(Lanes{}, i);
  for (; i < n; ++i)
    body(0.f, i);
}

/// The sum of body(V{}, i) over a row. (A reduction clause of OpenMP adds the lanes one after the
/// other.)
template <class Body>
VFM_INLINE float sum_lanes(std::int64_t n, Body body) {
  Lanes total{};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    total += body(Lanes{}, i);
  float sum = sum_of(total);
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
  // Bound to references whose type has lost the attribute of Lanes: these must be aligned.
  typedef float Aligned __attribute__((vector_size(64)));
  Aligned first{}, second{};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    body(Lanes{}, i, first, second);
  TwoSums sums{sum_of(first), sum_of(second)};
  for (; i < n; ++i)
    body(0.f, i, sums.first, sums.second);
  return sums;
}

}  // namespace vfm::ops::VFM_ISA
