// Vectors, and loads and stores of f32 and bf16, for CPU kernels (files compiled once per
// instruction set, see ops/cpu/isa.h). Include only in x_cpu.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/float_bits.h"
#include "tensor/dtype.h"

// Vectors are passed only between inlined functions, so their calling convention does not matter.
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
// Rounds to nearest, ties to even. A NaN stays a NaN, except one with all mantissa bits set, which
// arithmetic never makes.
VFM_INLINE void store(bf16* p, float value) {
  const std::uint32_t bits = float_to_bits(value);
  *p = static_cast<bf16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// Calls body(T{}), T being the C++ type of `type`: float or bf16.
template <class Body>
VFM_INLINE void by_type(DType type, Body body) {
  type == DType::bf16 ? body(bf16{}) : body(float{});
}

/// Vectors as wide as the processor's registers; GCC would keep wider ones in memory while it
/// computes. They need no alignment in memory.
#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Native __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
typedef std::uint32_t NativeBits __attribute__((vector_size(4 * kWidth), may_alias));
typedef bf16 LowNative __attribute__((vector_size(2 * kWidth), aligned(2), may_alias));

/// Loads and stores for V = Native or V = float, so that one body serves both the middle and the
/// end of a row.
template <class V>
VFM_INLINE V load_as(const float* p) {
  // Names Native, as template arguments lose the attribute that allows any alignment.
  if constexpr (sizeof(V) == sizeof(float)) {
    return *p;
  } else {
    return *reinterpret_cast<const Native*>(p);
  }
}
template <class V>
VFM_INLINE V load_as(const bf16* p) {
  if constexpr (sizeof(V) == sizeof(float)) {
    return load(p);
  } else {
    const LowNative low = *reinterpret_cast<const LowNative*>(p);
    return (Native)(__builtin_convertvector(low, NativeBits) << 16);
  }
}
VFM_INLINE void store(float* p, Native value) {
  *reinterpret_cast<Native*>(p) = value;
}
VFM_INLINE void store(bf16* p, Native value) {
  const NativeBits bits = (NativeBits)value;
  *reinterpret_cast<LowNative*>(p) =
      __builtin_convertvector((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, LowNative);
}

}  // namespace vfm::ops::VFM_ISA
