// Adds a vector to some columns of every row, in place and without gradient: the bias of a product
// whose result is some columns of a wider matrix. (ops/matmul/linear.h adds a bias to all columns.)
// The CPU and a GPU give the same bits.
// Shape letters: N rows, W columns, M elements of the bias.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::ops {

/// Adds bias [M] f32 to columns first..first + M - 1 of y [N, W] f32. Throws Error for other shapes
/// and types.
void add_bias(const Tensor& y, std::int64_t first, const Tensor& bias);

}  // namespace vfm::ops
