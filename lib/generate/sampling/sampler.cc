// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "models/folder/model_facts.h"

namespace vfm::generate {
namespace {

constexpr std::array<std::pair<Sampler, const char*>, 6> kNames = {
    {{Sampler::euler, "euler"},
     {Sampler::edm_euler, "edm-euler"},
     {Sampler::heun, "heun"},
     {Sampler::res, "res"},
     {Sampler::flow, "flow"},
     {Sampler::lcm, "lcm"}}};

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

void check_sigmas(const SampleOptions& o) {
  const double most = o.flow() ? 1 : kLargestSigma;
  if (o.sigmas.size() > kMostSteps)
    fail_usage("{} noise levels are too many: give at most {}", o.sigmas.size(), kMostSteps);
  double before = INFINITY;
  for (const double sigma : o.sigmas) {
    if (!(sigma > 0 && sigma <= most))
      fail_usage("noise level {}: must be above 0 and at most {}{}", sigma, most,
                 o.flow() ? ", for the model is of flow matching" : "");
    if (!(sigma < before)) fail_usage("noise level {} follows {}: levels must fall", sigma, before);
    before = sigma;
  }
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
  fail_usage("unknown sampler '{}': choose euler, edm-euler, heun, res, flow or lcm", name);
}

std::string to_string(Sampler sampler) {
  return std::ranges::find(kNames, sampler, &std::pair<Sampler, const char*>::first)->second;
}

void check_sampler(Sampler asked, Sampler own) {
  const bool flow = own == Sampler::flow;
  if (asked == Sampler::lcm) return;
  if ((asked == Sampler::flow) != flow)
    fail_usage("sampler '{}' is {}for models of flow matching, and this is {}", to_string(asked),
               flow ? "not " : "", flow ? "one" : "none");
}

void SampleOptions::validate() const {
  if (sigmas.empty() && sigma_max > kLargestSigma)
    fail_usage("noise levels up to {} are too high: the highest is {}", sigma_max, kLargestSigma);
  if (steps > kMostSteps) fail_usage("{} steps are too many: give at most {}", steps, kMostSteps);
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
  options.of_flow = options.flow();
  try {
    options.validate();
  } catch (const Error& error) {
    fail("'sampling' of {}: {}", what, error.what());
  }
  return options;
}

std::vector<double> karras_sigmas(int n, double sigma_min, double sigma_max, double rho) {
  if (n < 1) fail_usage("{} steps: give at least one", n);
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

std::vector<double> noise_levels(const SampleOptions& o) {
  std::vector<double> sigmas;
  if (!o.sigmas.empty()) {
    check_sigmas(o);
    if (o.sampler == Sampler::edm_euler && o.sigmas.size() == 1)
      fail_usage("edm-euler needs two noise levels or more");
    sigmas = o.sigmas;
  } else if (o.flow()) {
    if (o.steps < 1) fail_usage("{} steps: give at least one", o.steps);
    if (!(o.shift > 0 && std::isfinite(o.shift)))
      fail_usage("shift {}: must be a positive number", o.shift);
    sigmas = flow_sigmas(o.steps, o.shift);
  } else {
    const bool res = o.sampler == Sampler::res && o.steps > 0;
    if (o.sampler == Sampler::edm_euler && o.steps == 1)
      fail_usage("edm-euler needs two steps or more");
    sigmas = karras_sigmas(o.steps + (res ? 1 : 0), o.sigma_min, o.sigma_max);
  }
  sigmas.push_back(o.sampler == Sampler::edm_euler ? sigmas.back() : 0);
  return sigmas;
}

Renoise fresh_noise(bool flow, std::uint64_t seed, std::uint64_t key) {
  return [=](std::span<const double> x0, double sigma, int step, std::span<double> x) {
    std::vector<float> noise(x.size());
    Random(seed, Purpose::sampler_noise, static_cast<std::uint32_t>(step), key).fill_normal(noise);
    const double clean = flow ? 1 - sigma : 1;
    for (std::size_t j = 0; j < x.size(); ++j)
      x[j] = clean * x0[j] + sigma * noise[j];
  };
}

void sample_step(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
                 SamplerState& state, const Renoise& renoise) {
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
  if (sampler == Sampler::lcm) {
    renoise(x0, sigma_next, state.step, x);
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
            SamplerState& state, const AfterStep& after_step, const Renoise& renoise) {
  const int last = static_cast<int>(sigmas.size()) - 1;
  while (state.step < last) {
    sample_step(sampler, sigmas, denoise, state, renoise);
    if (after_step && state.step < last) after_step(state);
  }
}

int evaluations(const SampleOptions& o) {
  const bool given = !o.sigmas.empty();
  const int steps = given ? static_cast<int>(o.sigmas.size()) : o.steps;
  switch (o.sampler) {
    case Sampler::edm_euler:
      return steps - 1;
    case Sampler::heun:
      return 2 * steps - 1;
    case Sampler::res:
      return given ? steps : steps + 1;
    case Sampler::euler:
    case Sampler::flow:
    case Sampler::lcm:
      break;
  }
  return steps;
}

}  // namespace vfm::generate
