// A matrix product for blocks that are in cache: the inner loop of attention. Include only in
// x_cpu.cc (see ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

// Sixteen floats, whatever the width of the processor's registers. Unaligned in memory.
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));

// Number of registers for sums.
#if defined(__AVX512F__)
inline constexpr int kRegisters = 24;
#elif defined(__AVX__)
inline constexpr int kRegisters = 12;
#else
inline constexpr int kRegisters = 8;
#endif

// Computes C (+)= A B for R rows by V * kWidth columns. A(i, p) = a[i * ai + p * ap]; rows of B and
// C are ldb and ldc elements apart.
template <int R, int V>
VFM_INLINE void block_tile(std::int64_t depth, const float* a, std::int64_t ai, std::int64_t ap,
                           const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  Native sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      sum[i][j] = add ? *reinterpret_cast<const Native*>(c + i * ldc + kWidth * j) : Native{};
  for (std::int64_t p = 0; p < depth; ++p) {
    Native row[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      row[j] = *reinterpret_cast<const Native*>(b + p * ldb + kWidth * j);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const float value = a[i * ai + p * ap];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j)
        sum[i][j] += value * row[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j)
      *reinterpret_cast<Native*>(c + i * ldc + kWidth * j) = sum[i][j];
}

template <int V>
VFM_INLINE void block_columns(std::int64_t rows, std::int64_t depth, const float* a,
                              std::int64_t ai, std::int64_t ap, const float* b, std::int64_t ldb,
                              float* c, std::int64_t ldc, bool add) {
  constexpr int kRows = kRegisters / V < 1 ? 1 : (kRegisters / V > 12 ? 12 : kRegisters / V);
  std::int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    block_tile<kRows, V>(depth, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
  if constexpr (kRows > 4)
    for (; i + 4 <= rows; i += 4)
      block_tile<4, V>(depth, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
  for (; i < rows; ++i)
    block_tile<1, V>(depth, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
}

// C (+)= A B for rows x columns; columns is a multiple of 16.
static __attribute__((noinline, unused)) void block_gemm(std::int64_t rows, std::int64_t columns,
                                                         std::int64_t depth, const float* a,
                                                         std::int64_t ai, std::int64_t ap,
                                                         const float* b, std::int64_t ldb, float* c,
                                                         std::int64_t ldc, bool add) {
  constexpr int kSixteen = 16 / kWidth;  // registers
  constexpr int kWide = kRegisters >= 24 ? 4 : 1;
  std::int64_t j = 0;
  for (; j + 16 * kWide <= columns; j += 16 * kWide)
    block_columns<kSixteen * kWide>(rows, depth, a, ai, ap, b + j, ldb, c + j, ldc, add);
  if constexpr (kWide > 1) {
    if (columns - j == 48)
      return block_columns<3>(rows, depth, a, ai, ap, b + j, ldb, c + j, ldc, add);
    if (columns - j == 32)
      return block_columns<2>(rows, depth, a, ai, ap, b + j, ldb, c + j, ldc, add);
    if (columns - j == 16)
      return block_columns<1>(rows, depth, a, ai, ap, b + j, ldb, c + j, ldc, add);
  }
}

// One step of transposing a 16 x 16 block: swaps the off-diagonal quarters of every 2N x 2N block,
// for rows i and i + N.
template <int N, int... kLane>
VFM_INLINE void swap_quarters(Lanes* row, std::integer_sequence<int, kLane...>) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (i & N) continue;
    const Lanes first = row[i], second = row[i + N];
    row[i] = __builtin_shufflevector(first, second, (kLane & N ? 16 + kLane - N : kLane)...);
    row[i + N] = __builtin_shufflevector(first, second, (kLane & N ? 16 + kLane : kLane + N)...);
  }
}

// to[j][i] = from[i][j] for a 16 x 16 block of 32-bit words.
VFM_INLINE void transpose_block(const float* from, std::int64_t from_stride, float* to,
                                std::int64_t to_stride) {
  Lanes row[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    row[i] = *reinterpret_cast<const Lanes*>(from + i * from_stride);
  constexpr std::make_integer_sequence<int, 16> lanes;
  swap_quarters<1>(row, lanes);
  swap_quarters<2>(row, lanes);
  swap_quarters<4>(row, lanes);
  swap_quarters<8>(row, lanes);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    *reinterpret_cast<Lanes*>(to + i * to_stride) = row[i];
}

}  // namespace vfm::ops::VFM_ISA
