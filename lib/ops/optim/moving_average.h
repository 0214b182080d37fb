// An exponential moving average of weights that lies in the host's memory, whatever device they are
// on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// average = decay average + (1 - decay) values; both f32, of as many elements, on the CPU.
void moving_average(const Tensor& average, const Tensor& values, float decay);

}  // namespace vfm::ops
