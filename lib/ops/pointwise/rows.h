// Takes rows from a matrix by index, and adds rows back to it. Not recorded: used by ops
// (ops/pointwise/row_order.h, ops/pointwise/embedding.h).
// Shape letters: N rows of the result, M rows of the matrix, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// y[i] = x[numbers[i]] for x [M, D], f32 or bf16. `numbers` is [N] i32 on x's device, each below
/// M; -1 gives a row of zeros.
Tensor gather_rows(const Tensor& x, const Tensor& numbers);

/// For each row taken at least once, the indices of the result rows that take it.
struct RowTakers {
  std::vector<std::int32_t> rows;   ///< rows that are taken, ascending
  std::vector<std::int32_t> begin;  ///< [rows + 1]: start of each row's takers, then the end
  std::vector<std::int32_t> takers;
};
/// `numbers` are on the CPU; -1 takes no row. Throws Error for another number that is not below
/// `limit`.
RowTakers find_takers(const Tensor& numbers, std::int64_t limit);

/// to[row] += the rows of x that took the row, in their order, whatever the number of threads. x
/// [N, D] and to [M, D] are f32 on one device.
void add_rows(const Tensor& x, const RowTakers& takers, const Tensor& to);

}  // namespace vfm::ops
