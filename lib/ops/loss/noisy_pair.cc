// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/noisy_pair.h"

#include <algorithm>

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

namespace {

/// The noise is in latents.
void mix(const NoisySample& s, const float* x, float* latents, float* target) {
  const auto run = [&](std::int64_t begin, std::int64_t end, float in, float in_noise) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float e = latents[i];
      latents[i] = in * x[i] + in_noise * e;
      target[i] = s.of_x0 * x[i] - s.of_noise * e;
    }
  };
  if (s.given == 0) return run(0, s.count, s.in, s.in_noise);
  for (std::int64_t begin = 0; begin < s.count; begin += s.channel) {
    run(begin, begin + s.given, s.given_in, s.given_noise);
    run(begin + s.given, begin + s.channel, s.in, s.in_noise);
  }
}

}  // namespace

void cpu::noisy_pair(const Tensor& x0, std::span<const NoisySample> samples, const NoisyPair& out) {
  const float* x = x0.data<float>();
  float *latents = out.latents.data<float>(), *target = out.target.data<float>();
  for (const NoisySample& s : samples) {
    s.noise.fill_normal({latents, static_cast<std::size_t>(s.count)});
    mix(s, x, latents, target);
    x += s.count, latents += s.count, target += s.count;
    std::fill_n(latents, s.given, 1.0f);
    std::fill_n(latents + s.given, s.channel - s.given, 0.0f);
    latents += s.channel;
  }
}

}  // namespace vfm::ops
