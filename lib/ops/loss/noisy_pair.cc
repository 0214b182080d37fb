// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/noisy_pair.h"

#include "base/error.h"
#include "ops/loss/loss_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

NoisyPair noisy_pair(const Tensor& x0, std::span<const NoisySample> samples) {
  std::int64_t total = 0, marks = 0;
  for (const NoisySample& s : samples) {
    if (s.given < 0 || s.given > s.channel || (s.channel > 0 && s.count % s.channel != 0))
      fail("{} of {} elements a channel are given, in a sample of {}", s.given, s.channel, s.count);
    total += s.count;
    marks += s.channel;
  }
  if (x0.dtype() != DType::f32 || x0.elements() != total)
    fail("noise for {} elements does not fit {} {}", total, dtype_name(x0.dtype()),
         to_string(x0.shape()));
  const Shape longer = marks > 0 ? Shape{total + marks} : x0.shape();
  const NoisyPair pair{Tensor(longer, DType::f32, x0.device()),
                       Tensor(x0.shape(), DType::f32, x0.device())};
  VFM_RUN(Touching(x0, pair.latents, pair.target), noisy_pair, x0, samples, pair);
  return pair;
}

}  // namespace vfm::ops
