// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/sample_options.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace vfm::generate {

void SampleOptions::validate() const {
  if (sigmas.empty() && sigma_max > models::kLargestSigma)
    fail_usage("noise levels up to {} are too high: the highest is {}", sigma_max,
               models::kLargestSigma);
  if (steps > models::kMostSteps)
    fail_usage("{} steps are too many: give at most {}", steps, models::kMostSteps);
  noise_levels(*this);
  for (const int network : {0, 1})
    if (!(std::abs(guidance_of(network)) <= kMostGuidance))
      fail_usage("guidance {}: must be between -{} and {}", guidance_of(network), kMostGuidance,
                 kMostGuidance);
  if (!(augment_sigma >= 0 && std::isfinite(augment_sigma)))
    fail_usage("noise {} on condition frames: must not be negative", augment_sigma);
  if (!(temperature >= 0 && std::isfinite(temperature)))
    fail_usage("temperature {}: must be 0 or more", temperature);
  if (!(top_p > 0 && top_p <= 1)) fail_usage("top-p {}: must be above 0 and at most 1", top_p);
}

SampleOptions SampleOptions::of(const models::SamplingFacts& facts, const std::string& what) {
  SampleOptions options;
  options.process = facts.process;
  options.sampler = facts.sampler.value_or(default_sampler(facts.process));
  options.steps = static_cast<int>(facts.steps.value_or(options.steps));
  options.sigma_min = facts.sigma_min.value_or(options.sigma_min);
  options.sigma_max = facts.sigma_max.value_or(options.sigma_max);
  options.shift = facts.shift.value_or(options.shift);
  options.diffusers = facts.diffusers;
  if (options.diffusers) options.as = models::SampledAs::reference;
  options.guidance = facts.guidance.value_or(options.guidance);
  options.guidance_low = facts.guidance_low;
  try {
    options.validate();
  } catch (const Error& error) {
    fail("'sampling' of {}: {}", what, error.what());
  }
  return options;
}

int network_of(double level, double boundary) {
  return static_cast<float>(level) < static_cast<float>(boundary) ? 1 : 0;
}

int first_network_steps(const SampleOptions& options, double boundary) {
  const std::vector<double> levels = noise_levels(options);
  int steps = 0;
  for (std::size_t i = 0; i + 2 < levels.size() && network_of(levels[i], boundary) == 0; ++i)
    ++steps;
  return steps;
}

std::vector<double> parse_sigmas(std::string_view text) {
  std::vector<double> sigmas;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;; ++next) {
    double& sigma = sigmas.emplace_back();
    const auto [stop, error] = std::from_chars(next, end, sigma);
    if (error != std::errc{} || (stop != end && *stop != ','))
      fail_usage("noise levels '{}' are not numbers divided by commas, as in 1,0.75,0.5", text);
    if (stop == end) return sigmas;
    next = stop;
  }
}

}  // namespace vfm::generate
