// Reorders the rows of a pack, so that tokens that attend to each other are adjacent; and selects
// rows, some of them several times, for tokens that attend to the same rows.
// Shape letters: S tokens, D width, N selected rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ops/pointwise/rows.h"
#include "ops/tape.h"

namespace vfm::ops {

/// A permutation. Made once for a pack and used by every layer.
class RowOrder {
 public:
  RowOrder() = default;
  /// Row i of the new order is row order[i] of the old. Throws Error unless each of 0..S-1 occurs
  /// once.
  RowOrder(std::span<const std::int32_t> order, Device device);

  std::int64_t rows() const { return there_.elements(); }
  const Tensor& there() const { return there_; }  ///< [S] i32: order
  const Tensor& back() const { return back_; }    ///< [S] i32: the inverse of order

 private:
  Tensor there_, back_;
};

/// A selection from S rows, each any number of times. Made once for a pack and used by every layer.
class RowChoice {
 public:
  RowChoice() = default;
  /// Throws Error for a number that is not below `of`.
  RowChoice(std::span<const std::int32_t> numbers, std::int64_t of, Device device);

  /// y[i] = x[numbers[i]]: [S, D] to [N, D], f32 or bf16, on the choice's device. Not recorded.
  Tensor take(const Tensor& x) const;
  /// The adjoint of take(): gradients of the same row are added in f32, in the order of the
  /// numbers. The result has dy's dtype. Not recorded.
  Tensor add_back(const Tensor& dy) const;

 private:
  std::int64_t of_ = 0;
  Tensor numbers_;
  std::shared_ptr<const RowTakers> takers_;
};

/// y[i] = x[order[i]]; x [S, D], f32 or bf16, on the order's device.
Tensor reorder_rows(Tape& tape, const Tensor& x, const RowOrder& order);
/// The inverse of reorder_rows: restore_rows(reorder_rows(x)) is x.
Tensor restore_rows(Tape& tape, const Tensor& x, const RowOrder& order);

}  // namespace vfm::ops
