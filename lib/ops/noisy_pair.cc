// SPDX-License-Identifier: Apache-2.0
#include "ops/noisy_pair.h"

#include "base/error.h"
#include "ops/noisy_pair_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

NoisyPair noisy_pair(const Tensor& x0, std::span<const NoisySample> samples) {
  std::int64_t total = 0;
  for (const NoisySample& sample : samples)
    total += sample.count;
  if (x0.dtype() != DType::f32 || x0.elements() != total)
    fail("noise for {} elements does not fit {} {}", total, dtype_name(x0.dtype()),
         to_string(x0.shape()));
  const NoisyPair pair{Tensor(x0.shape(), DType::f32, x0.device()),
                       Tensor(x0.shape(), DType::f32, x0.device())};
  if constexpr (kHaveCuda) {
    if (x0.device() == Device::cuda) {
      noisy_pair_cuda(x0, samples, pair);
      return pair;
    }
  }
  const float* x = x0.data<float>();
  float *latents = pair.latents.data<float>(), *target = pair.target.data<float>();
  for (const NoisySample& s : samples) {
    s.noise.fill_normal({latents, static_cast<std::size_t>(s.count)});
    for (std::int64_t i = 0; i < s.count; ++i) {
      const float e = latents[i];
      latents[i] = s.in * x[i] + s.in_noise * e;
      target[i] = s.of_x0 * x[i] - s.of_noise * e;
    }
    x += s.count, latents += s.count, target += s.count;
  }
  return pair;
}

}  // namespace vfm::ops
