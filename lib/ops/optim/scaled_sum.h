// The sum of two tensors, each times a number, for optimizers that compute with whole matrices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// out = a x + b y, element by element, computed in f32; a bf16 result is rounded once. All have
/// the same number of elements and one device. Each is f32 or bf16, but x and y are not both bf16.
/// `out` may be x or y. Not recorded.
void scaled_sum(const Tensor& out, float a, const Tensor& x, float b, const Tensor& y);

}  // namespace vfm::ops
