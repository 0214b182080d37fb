// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/loss/noisy_pair_kernels.h"

namespace vfm::ops {
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
