// Rows of a pack in another order: so that what attends to each other stands together.
// Shape letters: S tokens, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace vfm::ops {

/// A permutation. Made once for a pack, used by every layer.
class RowOrder {
 public:
  RowOrder() = default;
  /// Row i of the new order is row order[i] of the old. Throws Error unless each of 0..S-1 is there
  /// once.
  RowOrder(std::span<const std::int32_t> order, Device device);

  std::int64_t rows() const { return there_.elements(); }
  const Tensor& there() const { return there_; }  ///< [S] i32: order
  const Tensor& back() const { return back_; }    ///< [S] i32: its inverse

 private:
  Tensor there_, back_;
};

/// y[i] = x[order[i]]; x [S, D], f32 or bf16, on the order's device.
Tensor reorder_rows(Tape& tape, const Tensor& x, const RowOrder& order);
/// The inverse: restore_rows(reorder_rows(x)) is x.
Tensor restore_rows(Tape& tape, const Tensor& x, const RowOrder& order);

}  // namespace vfm::ops
