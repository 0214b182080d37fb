// The sum of squares of many arrays, for gradient norms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::ops {

/// An array of `count` floats on a device.
struct Extent {
  const float* data = nullptr;
  std::int64_t count = 0;
};

/// Sums in double, in fixed chunks added in a fixed order. The bits are the same for any number of
/// threads, and from run to run on a GPU. NaN or infinity in the arrays makes the sum NaN or
/// infinite.
double sum_squares(Device device, std::span<const Extent> arrays);

}  // namespace vfm::ops
