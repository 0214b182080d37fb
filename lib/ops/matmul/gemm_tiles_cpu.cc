// A tile of A has 16 rows of 32 numbers; one of B has 16 columns, with two rows of a column in a
// 32-bit word. Packed, tiles stand in the order in which they are multiplied: two that share their
// place in k, then the next two along k.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include "ops/attention/block_gemm.h"
#include "ops/cpu/tiles.h"
#include "ops/matmul/gemm_tiles.h"

namespace vfm::ops::VFM_ISA {
namespace {

constexpr std::int64_t kTileElements = 16 * 32, kSums = kTileStrip * kTileStrip;
// Products of fewer elements are not worth waking threads.
constexpr std::int64_t kTilesAlone = std::int64_t{1} << 20;

VFM_INLINE std::int64_t lesser(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
VFM_INLINE std::int64_t parts_of(std::int64_t n, std::int64_t size) {
  return (n + size - 1) / size;
}

// 16 rows of 32, of which `rows` and `columns` exist; others are zeros.
VFM_INLINE void copy_tile(const bf16* from, std::int64_t stride, std::int64_t rows,
                          std::int64_t columns, bf16* to) {
  const __mmask32 there = columns >= 32 ? 0xffffffffu : (1u << columns) - 1;
  for (std::int64_t r = 0; r < 16; ++r)
    _mm512_storeu_si512(to + 32 * r, r < rows ? _mm512_maskz_loadu_epi16(there, from + r * stride)
                                              : _mm512_setzero_si512());
}

VFM_INLINE void turn_tile(const bf16* from, std::int64_t stride, std::int64_t rows,
                          std::int64_t columns, bf16* to) {
  const bool words = stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(from) % 4 == 0;
  if (rows >= 16 && columns >= 32 && words)
    return transpose_block(reinterpret_cast<const float*>(from), stride / 2,
                           reinterpret_cast<float*>(to), 16);
  alignas(64) bf16 whole[kTileElements];
  copy_tile(from, stride, rows, columns, whole);
  transpose_block(reinterpret_cast<const float*>(whole), 16, reinterpret_cast<float*>(to), 16);
}

void pack_strip(const GemmTilesArgs& g, std::int64_t first, bf16* to) {
  for (std::int64_t k = 0; k < g.k; k += 32)
    for (std::int64_t row = first; row < first + kTileStrip; row += 16, to += kTileElements)
      copy_tile(g.a + row * g.a_stride + k, g.a_stride, g.m - row, g.k - k, to);
}

// Columns [first, first + columns) of the rows of B from `k` on, two tiles of columns at a time.
void pack_block(const GemmTilesArgs& g, std::int64_t first, std::int64_t columns, std::int64_t k,
                std::int64_t depth, bf16* to) {
  for (std::int64_t j = first; j < first + columns; j += kTileStrip)
    for (std::int64_t p = k; p < k + depth; p += 32)
      for (std::int64_t half = j; half < j + kTileStrip; half += 16, to += kTileElements)
        turn_tile(g.b + half * g.b_stride + p, g.b_stride, g.n - half, g.k - p, to);
}

// Four tiles of sums, of 32 rows and 32 columns, over `count` tiles along k. Without `two` the
// lower ones are of no rows. The tile numbers are part of the instructions.
template <bool two>
VFM_INLINE void multiply(const bf16* a, const bf16* b, std::int64_t count, float* sums, bool add) {
  if (add) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + 256, 64);
    if constexpr (two) _tile_loadd(2, sums + 512, 64);
    if constexpr (two) _tile_loadd(3, sums + 768, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (two) _tile_zero(2);
    if constexpr (two) _tile_zero(3);
  }
  for (; count > 0; --count, a += 2 * kTileElements, b += 2 * kTileElements) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTileElements, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (two) {
      _tile_loadd(5, a + kTileElements, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  if constexpr (two) _tile_stored(2, sums + 512, 64);
  if constexpr (two) _tile_stored(3, sums + 768, 64);
}

VFM_INLINE void put(const GemmTilesArgs& g, const float* sums, std::int64_t row,
                    std::int64_t column) {
  const std::int64_t columns = g.n - column;
  const __mmask32 there = columns >= 32 ? 0xffffffffu : (1u << columns) - 1;
  for (std::int64_t r = 0; r < lesser(kTileStrip, g.m - row); ++r) {
    const float* const from = sums + r / 16 * 512 + r % 16 * 16;
    __m512 left = _mm512_loadu_ps(from), right = _mm512_loadu_ps(from + 256);
    const std::int64_t at = (row + r) * g.c_stride + column;
    if (g.c_low) {
      _mm512_mask_storeu_epi16(static_cast<bf16*>(g.c) + at, there,
                               (__m512i)_mm512_cvtne2ps_pbh(right, left));
      continue;
    }
    float* const to = static_cast<float*>(g.c) + at;
    const auto low = static_cast<__mmask16>(there), high = static_cast<__mmask16>(there >> 16);
    if (g.add) {
      left = _mm512_add_ps(left, _mm512_maskz_loadu_ps(low, to));
      right = _mm512_add_ps(right, _mm512_maskz_loadu_ps(high, to + 16));
    }
    _mm512_mask_storeu_ps(to, low, left);
    _mm512_mask_storeu_ps(to + 16, high, right);
  }
}

// Strips [begin, end) of the packed rows, the first of which is `row`, by a block of columns.
void multiply_block(const GemmTilesArgs& g, std::int64_t row, std::int64_t begin, std::int64_t end,
                    std::int64_t column, float* scratch) {
  const std::int64_t columns = lesser(kTileColumns, g.n - column);
  const std::int64_t tiles = parts_of(g.k, 32);
  bf16* const block = reinterpret_cast<bf16*>(scratch);
  float* const all = scratch + kTileColumns * kTileDepth / 2;
  for (std::int64_t k = 0; k < g.k; k += kTileDepth) {
    const std::int64_t count = lesser(kTileDepth / 32, tiles - k / 32);
    pack_block(g, column, columns, k, 32 * count, block);
    asm volatile("" ::: "memory");  // GCC does not know that the tile loads read memory
    const bool last = k + kTileDepth >= g.k;
    for (std::int64_t strip = begin; strip < end; ++strip) {
      const bf16* const a =
          reinterpret_cast<const bf16*>(g.packed) + (strip * tiles + k / 32) * 2 * kTileElements;
      const std::int64_t first = row + strip * kTileStrip;
      for (std::int64_t j = 0; j < columns; j += kTileStrip) {
        float* const sums = all + ((strip - begin) * (kTileColumns / 32) + j / 32) * kSums;
        const bf16* const b = block + j / 32 * count * 2 * kTileElements;
        if (g.m - first > 16)
          multiply<true>(a, b, count, sums, k > 0);
        else
          multiply<false>(a, b, count, sums, k > 0);
        asm volatile("" ::: "memory");
        if (last) put(g, sums, first, column + j);
      }
    }
  }
}

}  // namespace

void gemm_tiles(const GemmTilesArgs& g) {
  const std::int64_t tiles = parts_of(g.k, 32), blocks = parts_of(g.n, kTileColumns);
  for (std::int64_t row = 0; row < g.m; row += kTileRows) {
    const std::int64_t strips = parts_of(lesser(kTileRows, g.m - row), kTileStrip);
#pragma omp parallel if (strips * kTileStrip * g.n * g.k > kTilesAlone)
    {
      bf16* const packed = reinterpret_cast<bf16*>(g.packed);
#pragma omp for schedule(static)
      for (std::int64_t strip = 0; strip < strips; ++strip)
        pack_strip(g, row + strip * kTileStrip, packed + strip * tiles * 2 * kTileElements);
      // Few blocks are cut into several parts, so that all threads have work.
      const std::int64_t wanted = parts_of(3 * omp_get_num_threads(), blocks);
      const std::int64_t each = parts_of(strips, lesser(wanted, strips));
      const std::int64_t parts = parts_of(strips, each);
      float* const scratch = g.threads + omp_get_thread_num() * g.thread_floats;
      Tiles::open();
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t item = 0; item < blocks * parts; ++item) {
        const std::int64_t begin = item % parts * each;
        multiply_block(g, row, begin, lesser(begin + each, strips), item / parts * kTileColumns,
                       scratch);
      }
      Tiles::close();
    }
  }
}

}  // namespace vfm::ops::VFM_ISA
