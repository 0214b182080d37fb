// Functions that AdamW and the sum of squares share on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/optimizer.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Returns the lists of `slots` in the GPU's memory. The lists of the last few different calls stay
/// there, as they are some megabytes for a large model and training alternates between one or two.
kernels::OptimizerSlots lists_of(const std::vector<kernels::OptimizerSlot>& slots);

/// Returns the sum of squares of the gradients, as one double on the GPU.
Tensor sum_gradients(const kernels::OptimizerSlots& all);

/// Allocates `count` doubles on the GPU. read_double() returns the first double of a tensor.
Tensor doubles(std::int64_t count);
double read_double(const Tensor& tensor);

}  // namespace vfm::ops
