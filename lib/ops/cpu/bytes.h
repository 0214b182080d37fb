// Widening of bytes and 16-bit words to 32-bit integers in vectors, for CPU kernels next to
// ops/cpu/simd.h. GCC 12 converts a vector of bytes one element at a time, which costs three times
// the product that follows, and a vector of 16-bit words in two parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/simd.h"
#ifdef __SSE4_1__
#include <immintrin.h>
#endif

namespace vfm::ops::VFM_ISA {

/// Without the alignment of Native, which would keep arrays of these types out of registers.
typedef std::int32_t IntLanes __attribute__((vector_size(4 * kWidth)));
typedef float FloatLanes __attribute__((vector_size(4 * kWidth)));

/// Loads kWidth bytes from any address.
VFM_INLINE IntLanes widen_bytes(const std::int8_t* p) {
#if defined(__AVX512F__)
  return (IntLanes)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(__AVX2__)
  return (IntLanes)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#elif defined(__SSE4_1__)
  std::int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return (IntLanes)_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four));
#else
  typedef std::int8_t Bytes __attribute__((vector_size(kWidth), aligned(1), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const Bytes*>(p), IntLanes);
#endif
}
VFM_INLINE IntLanes widen_bytes(const std::uint8_t* p) {
#if defined(__AVX512F__)
  return (IntLanes)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(__AVX2__)
  return (IntLanes)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#elif defined(__SSE4_1__)
  std::int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return (IntLanes)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
#else
  typedef std::uint8_t Bytes __attribute__((vector_size(kWidth), aligned(1), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const Bytes*>(p), IntLanes);
#endif
}
VFM_INLINE IntLanes widen_halves(const std::uint16_t* p) {
#if defined(__AVX512F__)
  return (IntLanes)_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__)
  return (IntLanes)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  return __builtin_convertvector(*reinterpret_cast<const LowNative*>(p), IntLanes);
#endif
}
VFM_INLINE FloatLanes lanes_of(IntLanes numbers) {
  return __builtin_convertvector(numbers, FloatLanes);
}

}  // namespace vfm::ops::VFM_ISA
