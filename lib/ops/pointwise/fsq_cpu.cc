// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/pointwise/pointwise_kernels.h"

namespace vfm::ops {

void cpu::fsq_forward(const Tensor& z, const FsqLevels& levels, const Tensor& values) {
  const float* const from = z.data<float>();
  float* const to = values.data<float>();
  const auto places = z.elements() / static_cast<std::int64_t>(levels.dimensions);
#pragma omp parallel for schedule(static) if (places > 4096)
  for (std::int64_t i = 0; i < places; ++i)
    for (std::size_t d = 0; d < levels.dimensions; ++d) {
      const auto at = i * static_cast<std::int64_t>(levels.dimensions) + static_cast<int>(d);
      const float level =
          std::nearbyint(std::tanh(from[at] + levels.shift[d]) * levels.half[d] - levels.offset[d]);
      const float above = level < levels.lowest[d] ? levels.lowest[d] : level;
      to[at] = (above > levels.highest[d] ? levels.highest[d] : above) / levels.middle[d];
    }
}

void cpu::fsq_backward(const Tensor& z, const FsqLevels& levels, const Tensor& dvalues,
                       const Tensor& dz) {
  const float* const from = z.data<float>();
  const float* const above = dvalues.data<float>();
  float* const to = dz.data<float>();
  const auto places = z.elements() / static_cast<std::int64_t>(levels.dimensions);
#pragma omp parallel for schedule(static) if (places > 4096)
  for (std::int64_t i = 0; i < places; ++i)
    for (std::size_t d = 0; d < levels.dimensions; ++d) {
      const auto at = i * static_cast<std::int64_t>(levels.dimensions) + static_cast<int>(d);
      const float bent = std::tanh(from[at] + levels.shift[d]);
      to[at] = above[at] * (1.f - bent * bent) * levels.half[d] / levels.middle[d];
    }
}

}  // namespace vfm::ops
