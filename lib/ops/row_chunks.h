// An exchange of rows (ops/exchange.h) in parts, so that some rows travel while others are
// multiplied. Tensor parallelism gathers rows before a matrix and sums them after it. Ops do not
// know ranks: nn/chunked_rows.h makes these objects for a group of ranks.
//
// Results equal those of the exchange as a whole if the product of a row does not depend on which
// other rows are multiplied with it. The parts and their order are the same each time and on all
// ranks.
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

/// Rows that arrive from all ranks.
class ComingRows {
 public:
  virtual ~ComingRows() = default;
  /// Waits for some rows and returns their range. The first range has this rank's rows. Each row is
  /// in exactly one range. Returns nothing once all rows have been returned.
  virtual std::optional<RowRange> next() = 0;
  /// Returns all rows, [N, D]. Rows that next() has not returned yet are uninitialised.
  virtual Tensor rows() const = 0;
  /// Waits for all rows and returns them.
  Tensor wait() {
    while (next()) {
    }
    return rows();
  }
};

class RowChunks {
 public:
  virtual ~RowChunks() = default;

  /// Begins to gather x [S, D] of every rank; S counts this rank's rows.
  virtual std::unique_ptr<ComingRows> gather(const Tensor& x) const = 0;

  /// Writes the given rows of this rank's summand into `into`.
  using Make = std::function<void(RowRange rows, const Tensor& into)>;
  /// The adjoint of gather(): returns this rank's rows of the sum of all ranks' summands
  /// [N, columns]. Calls `make` for ranges that cover each row once, rows of other ranks first.
  /// Then calls `meanwhile`, before it waits for the last rows that travel.
  virtual Tensor sum(std::int64_t columns, DType dtype, Device device, const Make& make,
                     const std::function<void()>& meanwhile = {}) const = 0;
};

}  // namespace vfm::ops
