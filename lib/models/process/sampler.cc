// SPDX-License-Identifier: Apache-2.0
#include "models/process/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/listed.h"
#include "base/philox.h"

namespace vfm::models {
namespace {

constexpr int kFlowLevels = 1000;  // the lowest level of flow matching is one part of these
constexpr double kMostShift = 1e6;  // beyond it levels coincide, and are not exact any more
constexpr int kMostOrder = 3;

struct SamplerStep;

struct SamplerRow {
  Sampler sampler;
  std::string_view name;
  std::optional<Process> process;  ///< the process of its models; none: any
  void (*move)(const SamplerStep& step, SamplerState& state);
  int passes = 1;           ///< estimates in a step between two levels above 0
  std::size_t history = 0;  ///< number of estimates that it keeps for later steps
  bool to_zero = true;      ///< whether it ends with the estimate at the lowest level above 0
  int more_levels = 0;      ///< number of levels above 0 beyond `steps`
  int order = 0;            ///< of a multistep method in lambda; 0: it is none
  bool corrects = false;
};

/// A step from one noise level to the next, which is above 0, with the estimate at the first.
struct SamplerStep {
  const SamplerRow& row;
  const SamplingPath& path;
  std::size_t i;
  const std::vector<double>& x0;

  double level() const { return path.levels[i]; }
  double next() const { return path.levels[i + 1]; }
};

/// x at the next level on the straight line through x at this one and the estimate at 0.
void euler_step(const SamplerStep& step, std::span<const double> x, std::span<double> out) {
  for (std::size_t j = 0; j < x.size(); ++j)
    out[j] = x[j] + (x[j] - step.x0[j]) / step.level() * (step.next() - step.level());
}

void euler_move(const SamplerStep& step, SamplerState& state) {
  euler_step(step, state.x, state.x);
}

void heun_move(const SamplerStep& step, SamplerState& state) {
  std::vector<double>& x = state.x;
  std::vector<double> next(x.size()), x0_next(x.size());
  euler_step(step, x, next);
  step.path.denoise(next, step.next(), x0_next);  // at the *new* point and level
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double slope = (x[j] - step.x0[j]) / step.level();
    const double slope_next = (next[j] - x0_next[j]) / step.next();
    x[j] += 0.5 * (slope + slope_next) * (step.next() - step.level());
  }
}

/// Two-step exponential integrator: in lambda = -ln sigma the flow is x' = x0 - x, and x0 is taken
/// as the line through the estimates here and a step before, which is integrated exactly:
///   x(next) = e^-h x + h (b1 x0 + b2 x0_before), b1 = phi1 - phi2 / c, b2 = phi2 / c,
/// h the step in lambda, c h the step back to the estimate before. The first step is Euler's.
void res_move(const SamplerStep& step, SamplerState& state) {
  if (state.estimates.empty()) return euler_move(step, state);
  const double h = std::log(step.level() / step.next());
  const double c = std::log(step.level() / step.path.levels[step.i - 1]) / h;  // negative
  const double phi1 = std::expm1(-h) / -h, phi2 = (phi1 - 1) / -h;
  const double b2 = phi2 / c, b1 = phi1 - b2;
  const double keep = std::exp(-h);
  const std::vector<double>& before = state.estimates[0];
  for (std::size_t j = 0; j < state.x.size(); ++j)
    state.x[j] = keep * state.x[j] + h * (b1 * step.x0[j] + b2 * before[j]);
}

void lcm_move(const SamplerStep& step, SamplerState& state) {
  std::vector<float> noise(state.x.size());
  step.path.noise(state.step, noise);
  const ProcessLevel next = step.path.process.at(step.next());
  for (std::size_t j = 0; j < noise.size(); ++j)
    state.x[j] = next.keep * step.x0[j] + next.noise * noise[j];
}

/// The distance of two levels in lambda = ln(keep / noise); infinite from level 1 of flow matching.
double lambda_between(const SamplingPath& path, std::size_t from, std::size_t to) {
  const auto lambda = [&](std::size_t i) {
    const ProcessLevel at = path.process.at(path.levels[i]);
    return std::log(at.keep) - std::log(at.noise);
  };
  return lambda(to) - lambda(from);
}

/// Earlier or later estimates, as points on a line: r is their distance in lambda from where a step
/// begins, in steps.
struct LambdaPoints {
  std::array<double, kMostOrder> r = {};
  std::array<const double*, kMostOrder> x0 = {};
  int count = 0;

  void add(double distance, const std::vector<double>& estimate) {
    r[static_cast<std::size_t>(count)] = distance;
    x0[static_cast<std::size_t>(count++)] = estimate.data();
  }
};

/// Returns UniPC's coefficients: the solution of sum_k r_k^(i-1) rho_k = b_i for i of 1 to the
/// number of points, b_i = i! phi_(i+1) / phi_1 of h. For one point the paper takes 1/2, its limit.
std::array<double, kMostOrder> unipc_weights(const LambdaPoints& points, double h) {
  if (points.count == 1) return {0.5};
  const auto n = static_cast<std::size_t>(points.count);
  double rows[kMostOrder][kMostOrder + 1];
  double phi = std::expm1(-h) / -h - 1, factorial = 1;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k)
      rows[i][k] = std::pow(points.r[k], static_cast<double>(i));
    rows[i][n] = phi * factorial / std::expm1(-h);
    factorial *= static_cast<double>(i) + 2;
    phi = phi / -h - 1 / factorial;
  }
  // Gauss-Jordan: the pivots are differences of points, which all differ.
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = i == p ? 0 : rows[i][p] / rows[p][p];
      for (std::size_t k = p; k <= n && i != p; ++k)
        rows[i][k] -= factor * rows[p][k];
    }
  std::array<double, kMostOrder> rho = {};
  for (std::size_t i = 0; i < n; ++i)
    rho[i] = rows[i][n] / rows[i][i];
  return rho;
}

/// Moves the state x from levels[from] to levels[from + 1] with the estimate x0 at the first:
///   x(next) = noise' / noise x - keep' (e^-h - 1) (x0 + sum rho_k (x0_k - x0) / r_k).
void lambda_step(const SamplingPath& path, std::size_t from, std::span<const double> x0,
                 const LambdaPoints& points, std::vector<double>& x) {
  const double h = lambda_between(path, from, from + 1);
  std::array<double, kMostOrder> weights = unipc_weights(points, h);
  const auto n = static_cast<std::size_t>(points.count);
  for (std::size_t k = 0; k < n; ++k)
    weights[k] /= points.r[k];
  const ProcessLevel here = path.process.at(path.levels[from]),
                     next = path.process.at(path.levels[from + 1]);
  const double kept = next.noise / here.noise, rest = -next.keep * std::expm1(-h);
  for (std::size_t j = 0; j < x.size(); ++j) {
    double line = x0[j];
    for (std::size_t k = 0; k < n; ++k)
      line += weights[k] * (points.x0[k][j] - x0[j]);
    x[j] = kept * x[j] + rest * line;
  }
}

/// Adds the newest `count` estimates before levels[from], which begin at `first` of the state's.
void add_earlier(const SamplingPath& path, std::size_t from, int count, std::size_t first,
                 const SamplerState& state, LambdaPoints& points) {
  const double h = lambda_between(path, from, from + 1);
  for (std::size_t i = 1; i <= static_cast<std::size_t>(count); ++i)
    points.add(-lambda_between(path, from - i, from) / h, state.estimates[first + i - 1]);
}

/// UniPC: the last step is done again with the estimate that it led to, and from there the next
/// one. The order rises with the estimates that there are, and falls at the end.
void multistep_move(const SamplerStep& step, SamplerState& state) {
  const auto order_of = [&](std::size_t i) {
    return static_cast<int>(std::min(
        {static_cast<std::size_t>(step.row.order), step.path.levels.size() - 1 - i, i + 1}));
  };
  if (step.row.corrects && step.i > 0) {
    LambdaPoints points;
    add_earlier(step.path, step.i - 1, order_of(step.i - 1) - 1, 1, state, points);
    points.add(1, step.x0);
    state.x = std::move(state.corrected);
    lambda_step(step.path, step.i - 1, state.estimates[0], points, state.x);
  }
  LambdaPoints points;
  add_earlier(step.path, step.i, order_of(step.i) - 1, 0, state, points);
  if (step.row.corrects) state.corrected = state.x;
  lambda_step(step.path, step.i, step.x0, points, state.x);
}

constexpr SamplerRow multistep(Sampler sampler, std::string_view name, int order, bool corrects) {
  return {.sampler = sampler,
          .name = name,
          .move = multistep_move,
          .history = static_cast<std::size_t>(corrects ? order : order - 1),
          .order = order,
          .corrects = corrects};
}

constexpr SamplerRow kSamplers[] = {
    {Sampler::euler, "euler", Process::edm, euler_move},
    {.sampler = Sampler::edm_euler,
     .name = "edm-euler",
     .process = Process::edm,
     .move = euler_move,
     .to_zero = false},
    {.sampler = Sampler::heun,
     .name = "heun",
     .process = Process::edm,
     .move = heun_move,
     .passes = 2},
    {.sampler = Sampler::res,
     .name = "res",
     .process = Process::edm,
     .move = res_move,
     .history = 1,
     .more_levels = 1},
    {Sampler::flow, "flow", Process::flow, euler_move},
    multistep(Sampler::unipc, "unipc", 2, true),
    multistep(Sampler::unipc1, "unipc1", 1, true),
    multistep(Sampler::unipc3, "unipc3", 3, true),
    multistep(Sampler::dpm, "dpm++", 2, false),
    {Sampler::lcm, "lcm", {}, lcm_move},
};

const SamplerRow& row_of(Sampler sampler) {
  return *std::ranges::find(kSamplers, sampler, &SamplerRow::sampler);
}

/// Of unipc and dpm++. All is written as in NumPy's linspace and in these programs, for a time that
/// is cut to a whole number depends on the last bit.
std::vector<double> multistep_sigmas(const SamplerRow& row, const NoiseSchedule& s) {
  const bool reference = s.as == SampledAs::reference;
  const double n = s.steps, lowest = 1.0 / kFlowLevels;
  const double highest = static_cast<double>(static_cast<float>(1 - lowest));
  std::vector<double> sigmas;
  for (int i = 0; i < s.steps; ++i) {
    double u = 0;
    if (row.corrects)
      u = reference ? i * (-highest / n) + highest : i * ((lowest - 1) / n) + 1;
    else if (reference)
      u = i * (-1 / n) + 1;
    else
      u = 1 - (i == 0 ? lowest : (n - i) * ((lowest - 1) / n) + 1);
    sigmas.push_back(s.process.shifted(u, s.shift));
  }
  return sigmas;
}

std::vector<double> flow_sigmas(int n, double shift) {
  const auto shifted = [&](double u) { return Process(Process::flow).shifted(u, shift); };
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

void check_sigmas(const NoiseSchedule& s) {
  const double most = s.process.highest();
  if (s.sigmas.size() > kMostSteps)
    fail_usage("{} noise levels are too many: give at most {}", s.sigmas.size(), kMostSteps);
  double before = INFINITY;
  for (const double sigma : s.sigmas) {
    if (!(sigma > 0 && sigma <= most))
      fail_usage("noise level {}: must be above 0 and at most {}{}", sigma, most,
                 s.process == Process::flow ? ", for the model is of flow matching" : "");
    if (!(sigma < before)) fail_usage("noise level {} follows {}: levels must fall", sigma, before);
    before = sigma;
  }
}

/// The number of levels above 0.
int count_levels(const NoiseSchedule& s) {
  return s.sigmas.empty() ? s.steps + row_of(s.sampler).more_levels
                          : static_cast<int>(s.sigmas.size());
}

/// Whether levels are float and times whole numbers.
bool rounds(const NoiseSchedule& s) {
  return s.process == Process::flow && row_of(s.sampler).order > 0;
}

/// The levels above 0, before they become float.
std::vector<double> exact_levels(const NoiseSchedule& s) {
  const SamplerRow& row = row_of(s.sampler);
  std::vector<double> sigmas;
  if (!s.sigmas.empty()) {
    check_sigmas(s);
    if (!row.to_zero && s.sigmas.size() == 1)
      fail_usage("{} needs two noise levels or more", row.name);
    sigmas = s.sigmas;
  } else if (s.process == Process::flow) {
    if (s.steps < 1) fail_usage("{} steps: give at least one", s.steps);
    if (!(s.shift >= 1 / kMostShift && s.shift <= kMostShift))
      fail_usage("shift {}: must be {} to {}", s.shift, 1 / kMostShift, kMostShift);
    sigmas = row.order > 0 ? multistep_sigmas(row, s) : flow_sigmas(s.steps, s.shift);
  } else {
    if (!row.to_zero && s.steps == 1) fail_usage("{} needs two steps or more", row.name);
    sigmas = karras_sigmas(s.steps > 0 ? count_levels(s) : s.steps, s.sigma_min, s.sigma_max);
  }
  // A corrector over several levels needs a finite lambda at the first.
  constexpr double kBelowOne = 1e-6;
  if (rounds(s) && row.corrects && std::abs(sigmas[0] - 1) < kBelowOne) sigmas[0] -= kBelowOne;
  return sigmas;
}

}  // namespace

std::vector<std::string_view> sampler_names() {
  std::vector<std::string_view> names;
  for (const SamplerRow& row : kSamplers)
    names.push_back(row.name);
  return names;
}

Sampler parse_sampler(std::string_view name) {
  for (const SamplerRow& row : kSamplers)
    if (row.name == name) return row.sampler;
  fail_usage("unknown sampler '{}': choose {}", name, listed(sampler_names(), " or "));
}

std::string to_string(Sampler sampler) {
  return std::string(row_of(sampler).name);
}

std::string to_string(SampledAs as) {
  return as == SampledAs::reference ? "reference" : "diffusers";
}

SampledAs parse_sampled_as(std::string_view name) {
  for (const SampledAs as : {SampledAs::diffusers, SampledAs::reference})
    if (to_string(as) == name) return as;
  fail_usage("unknown program '{}' to sample like: choose reference or diffusers", name);
}

std::optional<Process> process_of(Sampler sampler) {
  return row_of(sampler).process;
}

Sampler default_sampler(Process process) {
  return std::ranges::find(kSamplers, process, &SamplerRow::process)->sampler;
}

void check_sampler(Sampler sampler, Process process) {
  if (process_of(sampler).value_or(process) == process) return;
  const bool flow = process == Process::flow;
  std::vector<std::string_view> others;
  for (const SamplerRow& row : kSamplers)
    if (row.process.value_or(process) == process) others.push_back(row.name);
  fail_usage("sampler '{}' is {}for models of flow matching, and this is {}: choose {}",
             to_string(sampler), flow ? "not " : "", flow ? "one" : "none", listed(others, " or "));
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

std::vector<double> noise_levels(const NoiseSchedule& s) {
  const SamplerRow& row = row_of(s.sampler);
  std::vector<double> sigmas = exact_levels(s);
  if (rounds(s)) {
    double before = INFINITY;
    for (double& sigma : sigmas) {
      sigma = static_cast<double>(static_cast<float>(sigma));
      if (!(sigma < before))
        fail_usage(
            "noise level {} follows {}, because {} rounds them to float: give fewer steps or "
            "levels",
            sigma, before, row.name);
      before = sigma;
    }
  }
  sigmas.push_back(row.to_zero ? 0 : sigmas.back());
  return sigmas;
}

std::vector<double> noise_times(const NoiseSchedule& s) {
  std::vector<double> times;
  for (const double level : exact_levels(s)) {
    const double time = s.process.at(level).time;
    times.push_back(rounds(s) ? std::trunc(time) : time);
  }
  return times;
}

double first_deviation(const NoiseSchedule& s) {
  if (!rounds(s)) return noise_levels(s).front();
  return s.sigmas.empty() ? 1 : s.sigmas.front();
}

int evaluations(const NoiseSchedule& s) {
  const SamplerRow& row = row_of(s.sampler);
  return (count_levels(s) - 1) * row.passes + (row.to_zero ? 1 : 0);
}

int states_in_memory(Sampler sampler) {
  const SamplerRow& row = row_of(sampler);
  // Of a second estimate also the state that it is of.
  return 2 * row.passes + static_cast<int>(row.history) + (row.corrects ? 1 : 0);
}

FreshNoise fresh_noise(std::uint64_t seed, std::uint64_t key) {
  return [=](int step, std::span<float> noise) {
    Random(seed, Purpose::sampler_noise, static_cast<std::uint32_t>(step), key).fill_normal(noise);
  };
}

void sample_step(const SamplingPath& path, SamplerState& state) {
  const auto i = static_cast<std::size_t>(state.step);
  const double level = path.levels[i], next = path.levels[i + 1];
  const SamplerRow& row = row_of(path.sampler);
  if (state.estimates.size() != std::min(i, row.history) ||
      state.corrected.size() != (row.corrects && i > 0 ? state.x.size() : 0))
    fail("a state after step {} of {} that is not its own: remove it, and sample again", i,
         row.name);
  ++state.step;
  if (next == level) return;
  std::vector<double> x0(state.x.size());
  path.denoise(state.x, level, x0);
  if (next == 0) {
    // The step to zero is the estimate itself; written so, it is so to the last bit.
    state.x = std::move(x0);
    return;
  }
  row.move({row, path, i, x0}, state);
  state.estimates.insert(state.estimates.begin(), std::move(x0));
  state.estimates.resize(std::min(state.estimates.size(), row.history));
}

void sample(const SamplingPath& path, SamplerState& state, const AfterStep& after_step) {
  const int last = static_cast<int>(path.levels.size()) - 1;
  while (state.step < last) {
    sample_step(path, state);
    if (after_step && state.step < last) after_step(state);
  }
}

}  // namespace vfm::models
