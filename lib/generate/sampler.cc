// SPDX-License-Identifier: Apache-2.0
#include "generate/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/folder/model_facts.h"

namespace vfm::generate {
namespace {

constexpr std::array<std::pair<Sampler, const char*>, 5> kNames = {
    {{Sampler::euler, "euler"},
     {Sampler::edm_euler, "edm-euler"},
     {Sampler::heun, "heun"},
     {Sampler::res, "res"},
     {Sampler::flow, "flow"}}};

constexpr int kFlowLevels = 1000;  // the lowest level of flow matching is one part of these

std::vector<double> flow_sigmas(int n, double shift) {
  const auto shifted = [&](double u) { return shift * u / (1 + (shift - 1) * u); };
  // The scheduler shifts its lowest level when it is made, and all levels when they are set: the
  // levels between are even in what was shifted once.
  const double lowest = shifted(1.0 / kFlowLevels);
  std::vector<double> sigmas;
  for (int i = 0; i < n; ++i) {
    const double share = n == 1 ? 0 : static_cast<double>(i) / (n - 1);
    sigmas.push_back(shifted(1 + share * (lowest - 1)));
  }
  return sigmas;
}

/// x at `next` on the straight line through x at `sigma` and the estimate x0 at 0.
void euler_step(std::span<const double> x, std::span<const double> x0, double sigma, double next,
                std::span<double> out) {
  for (std::size_t j = 0; j < x.size(); ++j)
    out[j] = x[j] + (x[j] - x0[j]) / sigma * (next - sigma);
}

/// Two-step exponential integrator: in lambda = -ln sigma the flow is x' = x0 - x, and x0 is taken
/// as the line through the estimates here and a step before, which is integrated exactly:
///   x(next) = e^-h x + h (b1 x0 + b2 x0_before), b1 = phi1 - phi2 / c, b2 = phi2 / c,
/// h the step in lambda, c h the step back to the estimate before.
void res_step(std::span<const double> sigmas, std::size_t i, std::span<const double> x0,
              std::span<const double> before, std::span<double> x) {
  const double h = std::log(sigmas[i] / sigmas[i + 1]);
  const double c = std::log(sigmas[i] / sigmas[i - 1]) / h;  // negative
  const double phi1 = std::expm1(-h) / -h, phi2 = (phi1 - 1) / -h;
  const double b2 = phi2 / c, b1 = phi1 - b2;
  const double keep = std::exp(-h);
  for (std::size_t j = 0; j < x.size(); ++j)
    x[j] = keep * x[j] + h * (b1 * x0[j] + b2 * before[j]);
}

}  // namespace

Sampler parse_sampler(std::string_view name) {
  for (const auto& [sampler, known] : kNames)
    if (name == known) return sampler;
  fail_usage("unknown sampler '{}': there are euler, edm-euler, heun, res and flow", name);
}

std::string to_string(Sampler sampler) {
  return std::ranges::find(kNames, sampler, &std::pair<Sampler, const char*>::first)->second;
}

void check_sampler(Sampler asked, Sampler own) {
  const bool flow = own == Sampler::flow;
  if ((asked == Sampler::flow) != flow)
    fail_usage("sampler '{}' is {}for models of flow matching, and this is {}", to_string(asked),
               flow ? "not " : "", flow ? "one" : "none");
}

void SampleOptions::validate() const {
  if (sigma_max > kLargestSigma)
    fail_usage("noise levels up to {}: at most {}", sigma_max, kLargestSigma);
  if (steps > kMostSteps) fail_usage("{} steps: at most {}", steps, kMostSteps);
  noise_levels(*this);
  if (!std::isfinite(guidance)) fail_usage("guidance {}: must be a finite number", guidance);
  if (!(augment_sigma >= 0 && std::isfinite(augment_sigma)))
    fail_usage("noise {} on condition frames: must not be negative", augment_sigma);
  if (!(temperature >= 0 && std::isfinite(temperature)))
    fail_usage("temperature {}: must be 0 or more", temperature);
  if (!(top_p > 0 && top_p <= 1)) fail_usage("top-p {}: must be above 0 and at most 1", top_p);
}

SampleOptions SampleOptions::of(const models::SamplingFacts& facts, const std::string& what) {
  SampleOptions options;
  if (!facts.sampler.empty()) options.sampler = parse_sampler(facts.sampler);
  options.steps = static_cast<int>(facts.steps.value_or(options.steps));
  options.sigma_min = facts.sigma_min.value_or(options.sigma_min);
  options.sigma_max = facts.sigma_max.value_or(options.sigma_max);
  options.shift = facts.shift.value_or(options.shift);
  options.guidance = facts.guidance.value_or(options.guidance);
  try {
    options.validate();
  } catch (const Error& error) {
    fail("'sampling' of {}: {}", what, error.what());
  }
  return options;
}

std::vector<double> karras_sigmas(int n, double sigma_min, double sigma_max, double rho) {
  if (n < 1) fail_usage("{} steps: at least one is needed", n);
  if (!(sigma_min > 0 && sigma_min < sigma_max && std::isfinite(sigma_max)))
    fail_usage("noise levels from {} to {}: must be positive, the second larger", sigma_min,
               sigma_max);
  const double high = std::pow(sigma_max, 1 / rho), low = std::pow(sigma_min, 1 / rho);
  std::vector<double> sigmas;
  for (int i = 0; i < n; ++i) {
    const double share = n == 1 ? 0 : static_cast<double>(i) / (n - 1);
    sigmas.push_back(std::pow(high + share * (low - high), rho));
  }
  return sigmas;
}

std::vector<double> noise_levels(const SampleOptions& o) {
  std::vector<double> sigmas;
  if (o.sampler == Sampler::flow) {
    if (o.steps < 1) fail_usage("{} steps: at least one is needed", o.steps);
    if (!(o.shift > 0 && std::isfinite(o.shift)))
      fail_usage("shift {}: must be a positive number", o.shift);
    sigmas = flow_sigmas(o.steps, o.shift);
  } else {
    const bool res = o.sampler == Sampler::res && o.steps > 0;
    if (o.sampler == Sampler::edm_euler && o.steps == 1)
      fail_usage("edm-euler with one step changes nothing: give two or more");
    sigmas = karras_sigmas(o.steps + (res ? 1 : 0), o.sigma_min, o.sigma_max);
  }
  sigmas.push_back(o.sampler == Sampler::edm_euler ? sigmas.back() : 0);
  return sigmas;
}

void sample_step(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
                 SamplerState& state) {
  const auto i = static_cast<std::size_t>(state.step);
  const double sigma = sigmas[i], sigma_next = sigmas[i + 1];
  ++state.step;
  if (sigma_next == sigma) return;
  std::vector<double>& x = state.x;
  std::vector<double> x0(x.size());
  denoise(x, sigma, x0);
  if (sigma_next == 0) {
    // The step to zero is the estimate itself; written so, it is so to the last bit.
    x = std::move(x0);
    return;
  }
  if (sampler == Sampler::res) {
    if (state.previous.empty())
      euler_step(x, x0, sigma, sigma_next, x);
    else
      res_step(sigmas, i, x0, state.previous, x);
    state.previous = std::move(x0);
    return;
  }
  if (sampler != Sampler::heun) {
    euler_step(x, x0, sigma, sigma_next, x);
    return;
  }
  std::vector<double> next(x.size()), slope(x.size());
  euler_step(x, x0, sigma, sigma_next, next);
  for (std::size_t j = 0; j < x.size(); ++j)
    slope[j] = (x[j] - x0[j]) / sigma;
  denoise(next, sigma_next, x0);  // at the *new* point and level
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double slope_next = (next[j] - x0[j]) / sigma_next;
    x[j] += 0.5 * (slope[j] + slope_next) * (sigma_next - sigma);
  }
}

void sample(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
            SamplerState& state, const AfterStep& after_step) {
  const int last = static_cast<int>(sigmas.size()) - 1;
  while (state.step < last) {
    sample_step(sampler, sigmas, denoise, state);
    if (after_step && state.step < last) after_step(state);
  }
}

int evaluations(const SampleOptions& o) {
  switch (o.sampler) {
    case Sampler::edm_euler:
      return o.steps - 1;
    case Sampler::heun:
      return 2 * o.steps - 1;
    case Sampler::res:
      return o.steps + 1;
    case Sampler::euler:
    case Sampler::flow:
      break;
  }
  return o.steps;
}

}  // namespace vfm::generate
