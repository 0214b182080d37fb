// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/moving_average.h"

#include "base/error.h"

namespace vfm::ops {

void moving_average(const Tensor& average, const Tensor& values, float decay) {
  const std::span<float> into = average.floats();
  const std::span<const float> from = values.floats();
  if (into.size() != from.size()) fail("an average of {} values over {}", into.size(), from.size());
  const auto count = static_cast<std::int64_t>(into.size());
  float* const a = into.data();
  const float* const v = from.data();
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i)
    a[i] = decay * a[i] + (1.f - decay) * v[i];
}

}  // namespace vfm::ops
