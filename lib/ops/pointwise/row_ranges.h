// Takes ranges of rows from a matrix and puts them back: a rank's part of a pack's tokens.
// Shape letters: S rows of the matrix, N rows of the ranges, D width.
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

/// Returns the rows of the ranges one after the other, x [S, D] to [N, D], in x's dtype. The
/// gradient is zero in other rows. Throws Error for ranges that are not ascending, overlap, or
/// exceed x.
Tensor take_ranges(Tape& tape, const Tensor& x, std::vector<RowRange> ranges);
/// The inverse of take_ranges, with zeros in other rows: x [N, D] to [rows, D].
Tensor place_ranges(Tape& tape, const Tensor& x, std::vector<RowRange> ranges, std::int64_t rows);

}  // namespace vfm::ops
