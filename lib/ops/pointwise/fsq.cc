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

}  // namespace vfm::ops
