// Tiles for CPU products of few rows. A tile has up to four outputs of one row, or two or three
// outputs of four rows, so that its sums fit into registers. Every tile sums in the same order, so
// its size does not change any bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cpu/bytes.h"

namespace vfm::ops::VFM_ISA {

/// Adds the upper half of the vector to the lower half until one number is left.
VFM_INLINE float lanes_total(FloatLanes lanes) {
#ifdef __AVX__
#ifdef __AVX512F__
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256((__m512)lanes),
                    _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)lanes), 1)));
#else
  const auto eight = (__m256)lanes;
#endif
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  float room[kWidth];
  store(room, (Native)lanes);
  for (int half = kWidth / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      room[i] += room[i + half];
  return room[0];
#endif
}

template <class Tile, int C, class Args>
VFM_INLINE void row_tiles_of_outputs(const Args& a, std::int64_t first) {
  std::int64_t row = 0;
  for (; row + 4 <= a.rows; row += 4)
    Tile::template make<C, 4>(a, row, first);
  if (row + 2 <= a.rows) {
    Tile::template make<C, 2>(a, row, first);
    row += 2;
  }
  if (row < a.rows) Tile::template make<C, 1>(a, row, first);
}

/// Computes all a.outputs of all a.rows, each a sum over a.columns. Tile::make<C, R>(a, row, first)
/// must compute outputs `first` to first + C of rows `row` to row + R. Tile::kOutputs is C for four
/// rows, 2 or 3, depending on the registers that its numbers leave.
template <class Tile, class Args>
void make_row_tiles(const Args& a) {
  constexpr std::int64_t kAtOnce = 24;
#pragma omp parallel for schedule(static) if (a.rows * a.columns * a.outputs > 4 * kAlone)
  for (std::int64_t begin = 0; begin < a.outputs; begin += kAtOnce) {
    const std::int64_t end = begin + kAtOnce < a.outputs ? begin + kAtOnce : a.outputs;
    std::int64_t first = begin;
    for (; a.rows == 1 && first + 4 <= end; first += 4)
      Tile::template make<4, 1>(a, 0, first);
    for (; a.rows >= 4 && first + Tile::kOutputs <= end; first += Tile::kOutputs)
      row_tiles_of_outputs<Tile, Tile::kOutputs>(a, first);
    for (; first + 2 <= end; first += 2)
      row_tiles_of_outputs<Tile, 2>(a, first);
    if (first < end) row_tiles_of_outputs<Tile, 1>(a, first);
  }
}

}  // namespace vfm::ops::VFM_ISA
