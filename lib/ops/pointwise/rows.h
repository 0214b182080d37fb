// Rows taken from a matrix by their numbers, and added back to it. Not recorded: what ops are made
// of (ops/pointwise/row_order.h, ops/pointwise/embedding.h).
// Shape letters: N rows of the result, M of the matrix, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// y[i] = x[numbers[i]]: x [M, D], f32 or bf16; numbers [N] i32 on x's device, each below M. -1: a
/// row of zeros.
Tensor gather_rows(const Tensor& x, const Tensor& numbers);

/// For each row that is taken, the result rows that take it: made of numbers that are on the CPU.
struct RowTakers {
  std::vector<std::int32_t> rows;   ///< that are taken, ascending
  std::vector<std::int32_t> begin;  ///< of each row's takers, and the end of the last: rows + 1
  std::vector<std::int32_t> takers;
};
/// -1 takes none. Throws Error for another number that is not below `limit`.
RowTakers find_takers(const Tensor& numbers, std::int64_t limit);

/// to[row] += the rows of x that took it, in their order, which no number of threads changes. x
/// [N, D] f32, to [M, D] f32, on one device.
void add_rows(const Tensor& x, const RowTakers& takers, const Tensor& to);

}  // namespace vfm::ops
