// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/pixel_error.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "ops/loss/loss_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

PixelError::Sums PixelError::read() const {
  const Tensor host = sums.to(Device::cpu);
  std::array<double, 2> values{};
  std::memcpy(values.data(), host.raw(), sizeof values);
  return {values[0], values[1]};
}

PixelError pixel_error(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                       double scale) {
  if (output.elements() != target.elements() || output.dtype() != DType::f32 ||
      target.dtype() != DType::f32 || output.device() != target.device())
    fail("the error of {} {} against {} {}", dtype_name(output.dtype()), to_string(output.shape()),
         dtype_name(target.dtype()), to_string(target.shape()));
  PixelError result;
  result.sums = Tensor({2 * static_cast<std::int64_t>(sizeof(double))}, DType::u8, output.device());
  if (scale != 0) result.seed = Tensor(output.shape(), DType::f32, output.device());
  VFM_RUN(Touching(output, target, result.seed), pixel_error, output, target, weights, scale,
          result);
  return result;
}

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
