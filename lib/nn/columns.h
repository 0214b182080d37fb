// Columns of a matrix, copied out of it and into it: what ranks exchange of queries, keys and
// values that stand beside each other. Not recorded. Matrices [N, *] of one dtype and device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::nn {

struct Columns {
  std::int64_t first = 0, count = 0, of = 0;
};

/// Copies `count` columns of x from column `at` to y from column `to`; both have as many rows.
void copy_columns(const Tensor& x, std::int64_t at, const Tensor& y, std::int64_t to,
                  std::int64_t count);

/// x [N, columns.of] to [N, columns.count].
Tensor take_columns(const Tensor& x, const Columns& columns);
/// The other way round, with zeros in the other columns.
Tensor place_columns(const Tensor& part, const Columns& columns);

}  // namespace vfm::nn
