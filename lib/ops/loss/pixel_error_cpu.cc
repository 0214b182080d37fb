// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstring>

#include "ops/loss/pixel_error_kernels.h"

namespace vfm::ops {

void cpu::pixel_error(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                      double scale, const PixelError& out) {
  const float* const made = output.data<float>();
  const float* const wanted = target.data<float>();
  float* const seed = scale != 0 ? out.seed.data<float>() : nullptr;
  const float l1 = static_cast<float>(weights.l1), l2 = static_cast<float>(weights.l2);
  const float factor = static_cast<float>(scale);
  std::array<double, 2> sums{};
  for (std::int64_t i = 0; i < output.elements(); ++i) {
    const float error = made[i] - wanted[i];
    sums[0] += std::abs(error);
    sums[1] += static_cast<double>(error) * error;
    if (seed == nullptr) continue;
    const float sign = error > 0 ? 1.f : error < 0 ? -1.f : 0.f;
    seed[i] = factor * (l1 * sign + 2 * l2 * error);
  }
  std::memcpy(out.sums.raw(), sums.data(), sizeof sums);
}

}  // namespace vfm::ops
