// SPDX-License-Identifier: Apache-2.0
#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vfm::generate {

Sampler parse_sampler(std::string_view name) {
  if (name == "euler") return Sampler::euler;
  if (name == "heun") return Sampler::heun;
  fail_usage("unknown sampler '{}': there are euler and heun", name);
}

std::string to_string(Sampler sampler) {
  return sampler == Sampler::euler ? "euler" : "heun";
}

std::vector<double> karras_sigmas(int steps, double sigma_min, double sigma_max, double rho) {
  if (steps < 1) fail_usage("{} steps: at least one is needed", steps);
  if (!(sigma_min > 0 && sigma_min < sigma_max && std::isfinite(sigma_max)))
    fail_usage("noise levels from {} to {}: must be positive, the second larger", sigma_min,
               sigma_max);
  const double high = std::pow(sigma_max, 1 / rho), low = std::pow(sigma_min, 1 / rho);
  std::vector<double> sigmas;
  for (int i = 0; i < steps; ++i) {
    const double share = steps == 1 ? 0 : static_cast<double>(i) / (steps - 1);
    sigmas.push_back(std::pow(high + share * (low - high), rho));
  }
  sigmas.push_back(0);
  return sigmas;
}

void sample(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
            std::span<double> x) {
  std::vector<double> x0(x.size()), slope(x.size()), next(x.size());
  for (std::size_t i = 0; i + 1 < sigmas.size(); ++i) {
    const double sigma = sigmas[i], sigma_next = sigmas[i + 1];
    denoise(x, sigma, x0);
    if (sigma_next == 0) {
      // The Euler step to zero is the estimate itself; written so, it is so to the last bit.
      std::copy(x0.begin(), x0.end(), x.begin());
      continue;
    }
    for (std::size_t j = 0; j < x.size(); ++j) {
      slope[j] = (x[j] - x0[j]) / sigma;
      next[j] = x[j] + slope[j] * (sigma_next - sigma);
    }
    if (sampler == Sampler::heun) {
      denoise(next, sigma_next, x0);  // at the *new* point and level
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double slope_next = (next[j] - x0[j]) / sigma_next;
        next[j] = x[j] + 0.5 * (slope[j] + slope_next) * (sigma_next - sigma);
      }
    }
    std::copy(next.begin(), next.end(), x.begin());
  }
}

int evaluations(Sampler sampler, int steps) {
  return sampler == Sampler::heun ? 2 * steps - 1 : steps;
}

}  // namespace vfm::generate
