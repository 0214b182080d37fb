// Ranges of rows taken from a matrix, and put back where they were: a rank's part of a pack's
// tokens.
// Shape letters: S rows of the whole, N of the ranges, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// Rows begin..end-1.
struct RowRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};
std::int64_t row_count(std::span<const RowRange> ranges);

/// The ranges' rows one after the other: x [S, D] to [N, D], of x's dtype. Its gradient is zero in
/// the other rows. Throws Error for ranges that are not ascending, overlap, or reach beyond x.
Tensor take_ranges(Tape& tape, const Tensor& x, std::vector<RowRange> ranges);
/// The inverse, with zeros in the other rows: x [N, D] to [rows, D].
Tensor place_ranges(Tape& tape, const Tensor& x, std::vector<RowRange> ranges, std::int64_t rows);

}  // namespace vfm::ops
