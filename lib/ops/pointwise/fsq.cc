// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/fsq.h"

#include <cmath>

#include "base/error.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

FsqLevels fsq_levels(std::span<const int> levels) {
  if (levels.empty() || levels.size() > kMostFsqLevels)
    fail("FSQ of {} numbers: 1 to {}", levels.size(), kMostFsqLevels);
  FsqLevels made;
  for (const int level : levels) {
    if (level < 3) fail("FSQ of {} levels: at least 3", level);
    const std::size_t d = made.dimensions++;
    made.half[d] = static_cast<float>((level - 1) * (1 + 1e-3) / 2);
    made.offset[d] = level % 2 == 0 ? 0.5f : 0.f;
    made.shift[d] = std::atanh(made.offset[d] / made.half[d]);
    made.middle[d] = static_cast<float>(level / 2);
    made.lowest[d] = -made.middle[d];
    made.highest[d] = static_cast<float>(level - 1 - level / 2);
  }
  return made;
}

Tensor fsq(Tape& tape, const Tensor& z, std::span<const int> levels) {
  const FsqLevels made = fsq_levels(levels);
  if (z.dtype() != DType::f32 || z.dims() < 1 ||
      z.size(z.dims() - 1) != static_cast<std::int64_t>(made.dimensions))
    fail("FSQ of {} {} to {} numbers", dtype_name(z.dtype()), to_string(z.shape()),
         made.dimensions);
  Tensor values(z.shape(), DType::f32, z.device());
  VFM_RUN(Touching(z, values), fsq_forward, z, made, values);
  tape.record(values, {z}, [z, values, made](Tape& t) {
    const Tensor above = t.take(values);
    Tensor gradient(z.shape(), DType::f32, z.device());
    VFM_RUN(Touching(z, above, gradient), fsq_backward, z, made, above, gradient);
    t.accumulate(z, gradient);
  });
  return values;
}

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
