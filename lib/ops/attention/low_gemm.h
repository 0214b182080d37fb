// The product of block_gemm.h for bf16 operands and f32 sums, with AMX tiles or AVX512-BF16.
// Include only in attention_low_cpu.cc.
//
// Both instructions need B in pairs of rows: the bf16 at b[(p / 2 * ldb + j) * 2 + p % 2] is B(p,
// j), so a 32-bit word holds two rows of one column.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include "ops/cpu/simd.h"
#if defined(__AMX_BF16__)
#include "ops/cpu/tiles.h"
#endif

namespace vfm::ops::VFM_ISA {

#if defined(__AMX_BF16__)

// The tile numbers are part of the instructions, hence the four spelled-out cases.
template <bool kTwoRows, bool kTwoColumns>
VFM_INLINE void low_tile(std::int64_t depth, const bf16* a, std::int64_t lda, const bf16* b,
                         std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  const std::int64_t c_bytes = ldc * 4, a_bytes = lda * 2, b_bytes = ldb * 4;
  if (add) {
    _tile_loadd(0, c, c_bytes);
    if constexpr (kTwoColumns) _tile_loadd(1, c + 16, c_bytes);
    if constexpr (kTwoRows) _tile_loadd(2, c + 16 * ldc, c_bytes);
    if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, c + 16 * ldc + 16, c_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kTwoColumns) _tile_zero(1);
    if constexpr (kTwoRows) _tile_zero(2);
    if constexpr (kTwoRows && kTwoColumns) _tile_zero(3);
  }
  for (std::int64_t p = 0; p < depth; p += 32) {
    _tile_loadd(4, a + p, a_bytes);
    _tile_loadd(6, b + p * ldb, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoColumns) {
      _tile_loadd(7, b + p * ldb + 32, b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoRows) {
      _tile_loadd(5, a + 16 * lda + p, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kTwoColumns) _tile_stored(1, c + 16, c_bytes);
  if constexpr (kTwoRows) _tile_stored(2, c + 16 * ldc, c_bytes);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, c + 16 * ldc + 16, c_bytes);
}

/// C (+)= A B; rows and columns are multiples of 16, depth of 32. Rows of A are lda apart.
static __attribute__((noinline)) void low_gemm(std::int64_t rows, std::int64_t columns,
                                               std::int64_t depth, const bf16* a, std::int64_t lda,
                                               const bf16* b, std::int64_t ldb, float* c,
                                               std::int64_t ldc, bool add) {
  asm volatile("" ::: "memory");  // GCC does not know that the tile loads read memory
  for (std::int64_t j = 0; j < columns; j += 32) {
    const bool wide = j + 32 <= columns;
    std::int64_t i = 0;
    for (; i + 32 <= rows; i += 32)
      wide
          ? low_tile<true, true>(depth, a + i * lda, lda, b + 2 * j, ldb, c + i * ldc + j, ldc, add)
          : low_tile<true, false>(depth, a + i * lda, lda, b + 2 * j, ldb, c + i * ldc + j, ldc,
                                  add);
    if (i < rows)
      wide ? low_tile<false, true>(depth, a + i * lda, lda, b + 2 * j, ldb, c + i * ldc + j, ldc,
                                   add)
           : low_tile<false, false>(depth, a + i * lda, lda, b + 2 * j, ldb, c + i * ldc + j, ldc,
                                    add);
  }
}

#elif defined(__AVX512BF16__)

struct Tiles {
  static void open() {}
  static void close() {}
};

template <int R, int V>
VFM_INLINE void low_tile(std::int64_t depth, const bf16* a, std::int64_t lda, const bf16* b,
                         std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  __m512 sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      sum[i][j] = add ? _mm512_loadu_ps(c + i * ldc + 16 * j) : _mm512_setzero_ps();
  for (std::int64_t p = 0; p < depth; p += 2) {
    __m512bh row[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      row[j] = (__m512bh)_mm512_loadu_si512(b + p * ldb + 32 * j);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      std::int32_t pair;
      __builtin_memcpy(&pair, a + i * lda + p, sizeof pair);
      const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j)
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], both, row[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      _mm512_storeu_ps(c + i * ldc + 16 * j, sum[i][j]);
}

template <int V>
VFM_INLINE void low_columns(std::int64_t rows, std::int64_t depth, const bf16* a, std::int64_t lda,
                            const bf16* b, std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  constexpr int kRows = V == 1 ? 8 : 16 / V;  // divides the sixteen
  for (std::int64_t i = 0; i < rows; i += kRows)
    low_tile<kRows, V>(depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
}

/// C (+)= A B; rows and columns are multiples of 16, depth of 32. Rows of A are lda apart.
static __attribute__((noinline)) void low_gemm(std::int64_t rows, std::int64_t columns,
                                               std::int64_t depth, const bf16* a, std::int64_t lda,
                                               const bf16* b, std::int64_t ldb, float* c,
                                               std::int64_t ldc, bool add) {
  std::int64_t j = 0;
  for (; j + 32 <= columns; j += 32)
    low_columns<2>(rows, depth, a, lda, b + 2 * j, ldb, c + j, ldc, add);
  if (j < columns) low_columns<1>(rows, depth, a, lda, b + 2 * j, ldb, c + j, ldc, add);
}

#endif

}  // namespace vfm::ops::VFM_ISA
