// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ops/loss/loss_kernels.h"

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

void cpu::pixel_error(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                      double scale, const PixelError& out) {
  const float* const made = output.data<float>();
  const float* const wanted = target.data<float>();
  float* const seed = scale != 0 ? out.seed.data<float>() : nullptr;
  const float l1 = static_cast<float>(weights.l1), l2 = static_cast<float>(weights.l2);
  const float factor = static_cast<float>(scale);
  std::array<double, 2> sums{};
  for (std::int64_t i = 0; i < output.elements(); ++i) {
    const float error = made[i] - wanted[i];
    sums[0] += std::abs(error);
    sums[1] += static_cast<double>(error) * error;
    if (seed == nullptr) continue;
    const float sign = error > 0 ? 1.f : error < 0 ? -1.f : 0.f;
    seed[i] = factor * (l1 * sign + 2 * l2 * error);
  }
  std::memcpy(out.sums.raw(), sums.data(), sizeof sums);
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
