// Computes the rows of a frame that curate/small_picture.h reads: two pixel rows for each row of
// cells. With --isolate, the decoding process copies only these rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace vfm::media {

/// Number of cells from top to bottom, for luma and for chroma. For packed RGB, both numbers are
/// used.
inline constexpr int kLumaCellRows = 64, kChromaCellRows = 32;

struct CellSpan {
  int begin, end;
};
/// Divides `size` pixels into `cells` cells, and returns the rows or columns of cell `i`. The
/// result has at least one pixel.
inline CellSpan cell_range(int i, int cells, int size) {
  const int begin = static_cast<int>(static_cast<std::int64_t>(i) * size / cells);
  const int end = static_cast<int>(static_cast<std::int64_t>(i + 1) * size / cells);
  return {begin, std::max(end, begin + 1)};
}

struct CellRows {
  int upper, lower;
};
/// Returns two rows of cell `i`. `upper` lies a quarter of the cell's height below the upper edge,
/// and `lower` lies as far above the lower edge.
inline CellRows cell_rows(int i, int cells, int size) {
  const CellSpan r = cell_range(i, cells, size);
  const int height = r.end - r.begin;
  return {r.begin + height / 4, r.begin + height - 1 - height / 4};
}

}  // namespace vfm::media
