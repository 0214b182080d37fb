// An exchange of rows (ops/exchange.h) that can be had in parts, so that some rows travel while
// others are multiplied: what tensor parallelism gathers before a matrix and sums after it.
// Ops know no ranks: nn/chunked_rows.h makes these of a group of them.
//
// Both directions give what the exchange as a whole gives, as long as the product of some rows does
// not depend on which others are multiplied with them. Which parts there are, and in what order
// they come, is the same each time and on all ranks.
// Source: Wang et al., "Overlap communication with dependent computation via decomposition in large
// deep learning models" (2023).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "ops/pointwise/row_ranges.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Rows on their way from all ranks.
class ComingRows {
 public:
  virtual ~ComingRows() = default;
  /// Some of all rows that are there now; waits for them. Each row is in one of the ranges, and
  /// this rank's own are in the first. Nothing: all are there.
  virtual std::optional<RowRange> next() = 0;
  /// All rows, [N, D]: of those that next() did not give yet there are no values.
  virtual Tensor rows() const = 0;
  /// All of them, when they are there.
  Tensor wait() {
    while (next()) {
    }
    return rows();
  }
};

class RowChunks {
 public:
  virtual ~RowChunks() = default;

  /// Begins to gather x [rows here, D] of every rank.
  virtual std::unique_ptr<ComingRows> gather(const Tensor& x) const = 0;

  /// Writes some rows of this rank's summand.
  using Make = std::function<void(RowRange rows, const Tensor& into)>;
  /// The sum of all ranks' summands [N, columns], of this rank's rows: the adjoint. `make` is
  /// called for ranges of rows, each row in one, those of other ranks first; then `meanwhile`,
  /// before the last of what travels is waited for.
  virtual Tensor sum(std::int64_t columns, DType dtype, Device device, const Make& make,
                     const std::function<void()>& meanwhile = {}) const = 0;
};

}  // namespace vfm::ops
