// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/squared_error.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/loss/loss_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

std::vector<double> SquaredError::read_sums() const {
  const Tensor host = sums.to(Device::cpu);
  std::vector<double> values(host.bytes() / sizeof(double));
  std::memcpy(values.data(), host.raw(), host.bytes());
  return values;
}

SquaredError squared_error(const Tensor& output, const Tensor& target,
                           std::span<const ErrorSample> samples, double scale) {
  std::int64_t total = 0;
  for (const ErrorSample& s : samples) {
    if (s.given < 0 || s.given > s.channel || (s.given > 0 && s.count % s.channel != 0))
      fail("{} of {} elements a channel are given, in a sample of {}", s.given, s.channel, s.count);
    total += s.count;
  }
  if (output.elements() != target.elements() || output.elements() != total ||
      output.dtype() != DType::f32 || target.dtype() != DType::f32 ||
      output.device() != target.device())
    fail("the squared error of {} {} and {} {} over {} elements", dtype_name(output.dtype()),
         to_string(output.shape()), dtype_name(target.dtype()), to_string(target.shape()), total);
  SquaredError result;
  const auto bytes = static_cast<std::int64_t>(samples.size() * sizeof(double));
  result.sums = Tensor({bytes}, DType::u8, output.device());
  if (scale != 0) result.seed = Tensor(output.shape(), DType::f32, output.device());
  VFM_RUN(Touching(output, target, result.seed), squared_error, output, target, samples, scale,
          result);
  return result;
}

void cpu::squared_error(const Tensor& output, const Tensor& target,
                        std::span<const ErrorSample> samples, double scale,
                        const SquaredError& out) {
  const float* const f = output.data<float>();
  const float* const t = target.data<float>();
  float* const seed = scale != 0 ? out.seed.data<float>() : nullptr;
  const float twice = static_cast<float>(2 * scale);
  std::int64_t i = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto [count, channel, given] = samples[s];
    double sum = 0;
    for (const std::int64_t end = i + count; i < end;) {
      if (seed) std::fill_n(seed + i, given, 0.0f);
      i += given;
      for (const std::int64_t rest = given > 0 ? i + channel - given : end; i < rest; ++i) {
        const float error = f[i] - t[i];
        sum += static_cast<double>(error) * static_cast<double>(error);
        if (seed) seed[i] = twice * error;
      }
    }
    std::memcpy(out.sums.data<double>() + s, &sum, sizeof sum);
  }
}

}  // namespace vfm::ops
