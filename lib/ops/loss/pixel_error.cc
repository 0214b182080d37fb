// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/pixel_error.h"

#include <array>
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

}  // namespace vfm::ops
