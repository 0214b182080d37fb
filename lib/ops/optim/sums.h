// Sums of optimizers: of two tensors, of an average and new values, and of squares. Not recorded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::ops {

/// out = a x + b y, element by element, computed in f32; a bf16 result is rounded once. All have
/// the same number of elements and one device. Each is f32 or bf16, but x and y are not both bf16.
/// `out` may be x or y.
void scaled_sum(const Tensor& out, float a, const Tensor& x, float b, const Tensor& y);

/// average = decay average + (1 - decay) values: an exponential moving average of weights, kept in
/// the host's memory. Both are f32 on the CPU, with the same number of elements.
void moving_average(const Tensor& average, const Tensor& values, float decay);

/// An array of `count` floats on a device.
struct Extent {
  const float* data = nullptr;
  std::int64_t count = 0;
};

/// Returns the sum of the squares of all arrays, for gradient norms. Sums in double, in fixed
/// chunks added in a fixed order. The bits are the same for any number of threads, and from run to
/// run on a GPU. NaN or infinity in the arrays makes the sum NaN or infinite.
double sum_squares(Device device, std::span<const Extent> arrays);

}  // namespace vfm::ops
