// What AdamW and the sum of squares share on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/optimizer.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// The lists of `slots`, in the GPU's memory. Training gives the same ones at every step, or two in
/// turn, and they are some megabytes for a large model: the last few stay there.
kernels::OptimizerSlots lists_of(const std::vector<kernels::OptimizerSlot>& slots);

/// The sum of squares of the gradients, as one double on the GPU.
Tensor sum_gradients(const kernels::OptimizerSlots& all);

/// Room for `count` doubles on the GPU, and the first of them.
Tensor doubles(std::int64_t count);
double read_double(const Tensor& tensor);

}  // namespace vfm::ops
