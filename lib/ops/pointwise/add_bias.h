// A vector added to some columns of every row, in place, without gradient: the bias of a product
// that was written beside others (ops/matmul/linear.h adds one to all columns). The CPU and a GPU
// give the same bits.
// Shape letters: N rows, W columns.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::ops {

/// y [N, W] f32, columns `first` to before first + M, += bias [M] f32. Throws Error for other
/// shapes and types.
void add_bias(const Tensor& y, std::int64_t first, const Tensor& bias);

}  // namespace vfm::ops
