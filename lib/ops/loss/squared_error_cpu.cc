// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "ops/loss/squared_error_kernels.h"

namespace vfm::ops {

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
