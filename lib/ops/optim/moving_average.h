// An exponential moving average of weights, kept in the host's memory. The weights may be on any
// device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// average = decay average + (1 - decay) values. Both are f32 on the CPU, with the same number of
/// elements.
void moving_average(const Tensor& average, const Tensor& values, float decay);

}  // namespace vfm::ops
