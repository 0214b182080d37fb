// Copies columns out of a matrix and into it, such as the queries, keys and values side by side
// that ranks exchange. Nothing is recorded on a tape. Matrices are [N, *], of one dtype and device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::nn {

/// Columns [first, first + count) of a matrix with `of` columns.
struct Columns {
  std::int64_t first = 0, count = 0, of = 0;
};

/// x [N, columns.of] to [N, columns.count].
Tensor take_columns(const Tensor& x, const Columns& columns);
/// The inverse: [N, columns.of] with zeros in the other columns.
Tensor place_columns(const Tensor& part, const Columns& columns);

}  // namespace vfm::nn
