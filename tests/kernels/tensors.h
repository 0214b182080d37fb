// In the tests of whole parts on the GPU: how far one tensor is from another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/noise.h"
#include "tensor/tensor.h"

namespace vfm::test {

/// The largest difference, as a part of the largest value of `b`. Infinite if the shapes differ or
/// a value is not finite.
inline double apart(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu).to(DType::f32), y = b.to(Device::cpu).to(DType::f32);
  if (x.shape() != y.shape()) return std::numeric_limits<double>::infinity();
  double worst = 0, largest = 1e-6;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double p = x.data<float>()[i], q = y.data<float>()[i];
    if (!std::isfinite(p) || !std::isfinite(q)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(p - q));
    largest = std::max(largest, std::abs(q));
  }
  return worst / largest;
}

}  // namespace vfm::test
