// The rows of a frame that curate/small_picture.h reads: two pixel rows for each row of cells. An
// isolated decoder (media/isolate/) passes on only these rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace vfm::media {

/// Number of cells from top to bottom, for luma and chroma; packed RGB has both.
inline constexpr int kLumaCellRows = 64, kChromaCellRows = 32;

struct CellSpan {
  int begin, end;
};
/// Returns the rows or columns of cell `i` of `cells` over `size` pixels. The result is never
/// empty, even if cells outnumber pixels.
inline CellSpan cell_range(int i, int cells, int size) {
  const int begin = static_cast<int>(static_cast<std::int64_t>(i) * size / cells);
  const int end = static_cast<int>(static_cast<std::int64_t>(i + 1) * size / cells);
  return {begin, std::max(end, begin + 1)};
}

struct CellRows {
  int upper, lower;
};
/// Returns two rows of a cell, a quarter of its height from the upper and the lower edge (the same
/// row twice if the cell is thin).
inline CellRows cell_rows(int i, int cells, int size) {
  const CellSpan r = cell_range(i, cells, size);
  const int height = r.end - r.begin;
  return {r.begin + height / 4, r.begin + height - 1 - height / 4};
}

}  // namespace vfm::media
