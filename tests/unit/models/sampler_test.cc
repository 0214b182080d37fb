// SPDX-License-Identifier: Apache-2.0
#include "models/process/sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "io/safetensors.h"
#include "support/distance.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;

namespace {

// For data N(0, s^2) the best estimate is D(x; sigma) = s^2 / (s^2 + sigma^2) x, and the flow is
// known: x(sigma) = x(sigma_max) sqrt((s^2 + sigma^2) / (s^2 + sigma_max^2)).
constexpr double kSpread = 0.5;

void gaussian(std::span<const double> x, double sigma, std::span<double> x0) {
  for (std::size_t i = 0; i < x.size(); ++i)
    x0[i] = kSpread * kSpread / (kSpread * kSpread + sigma * sigma) * x[i];
}

// At the lowest level above zero: the step to zero is Euler in all and is left out of the order.
double flow_error(Sampler sampler, int steps) {
  NoiseSchedule options;
  options.sampler = sampler;
  options.steps = steps;
  options.sigma_min = 0.05;
  options.sigma_max = 20;
  auto sigmas = noise_levels(options);
  sigmas.pop_back();
  SamplerState state{0, {20.0}};
  sample({Process::edm, sampler, sigmas, gaussian}, state);
  const double exact =
      20.0 * std::sqrt((kSpread * kSpread + 0.05 * 0.05) / (kSpread * kSpread + 20.0 * 20.0));
  return std::abs(state.x[0] - exact);
}

double order(Sampler sampler) {
  return std::log2(flow_error(sampler, 64) / flow_error(sampler, 128));
}

NoiseSchedule flow(int steps) {
  NoiseSchedule options;
  options.process = Process::flow;
  options.sampler = Sampler::flow;
  options.steps = steps;
  return options;
}

// In flow matching x = (1 - s) x0 + s noise; for data N(0, spread^2) the best estimate and the flow
// are known too: x(s) is proportional to its own standard deviation.
double straight_error(int steps) {
  NoiseSchedule options = flow(steps);
  options.shift = 3;
  auto sigmas = noise_levels(options);
  sigmas.pop_back();
  const auto variance = [](double s) { return (1 - s) * (1 - s) * kSpread * kSpread + s * s; };
  SamplerState state{0, {1.0}};
  const Denoise best = [&](std::span<const double> x, double s, std::span<double> x0) {
    x0[0] = (1 - s) * kSpread * kSpread / variance(s) * x[0];
  };
  sample({Process::flow, Sampler::flow, sigmas, best}, state);
  return std::abs(state.x[0] - std::sqrt(variance(sigmas.back())));
}

/// scripts/golden/samplers.py: its formula as network, its trajectories.
struct GoldenSampling {
  io::SafetensorsSet set{VFM_GOLDEN, "samplers"};

  std::vector<double> operator[](const std::string& name) const {
    const io::TensorView* view = set.find(name);
    INFO(name);
    REQUIRE(view != nullptr);
    const auto n = static_cast<std::size_t>(view->elements());
    std::vector<double> values(n);
    if (view->dtype == "F64") {
      std::memcpy(values.data(), view->data.data(), view->data.size());
    } else {
      std::vector<float> floats(n);
      std::memcpy(floats.data(), view->data.data(), view->data.size());
      std::copy(floats.begin(), floats.end(), values.begin());
    }
    return values;
  }
};

double formula(double v, double c_noise, double bias) {
  return std::sin(1.3 * v + bias) + 0.1 * c_noise;
}

// Compares every level and every state, each relative to the state's largest value.
void check_trajectory(const NoiseSchedule& options, const std::string& name, const Denoise& denoise,
                      double tolerance) {
  const GoldenSampling golden;
  const std::vector<double> sigmas = noise_levels(options);
  const auto expected_sigmas = golden[name + ".sigmas"], expected = golden[name + ".x"];
  REQUIRE(sigmas.size() == expected_sigmas.size());
  for (std::size_t i = 0; i < sigmas.size(); ++i)
    CHECK(sigmas[i] == Approx(expected_sigmas[i]).epsilon(tolerance));
  SamplerState state;
  state.x = golden["start"];
  for (double& value : state.x)
    value *= first_deviation(options);
  const std::size_t n = state.x.size();
  REQUIRE(expected.size() == n * sigmas.size());
  for (std::size_t step = 0;; ++step) {
    INFO(name << ", state " << step);
    CHECK(distance(state.x, std::span(expected).subspan(step * n, n)) <= tolerance);
    if (step + 1 == sigmas.size()) break;
    sample_step({options.process, options.sampler, sigmas, denoise}, state);
  }
}

std::size_t corrector_order(Sampler sampler) {
  return sampler == Sampler::unipc1   ? 1
         : sampler == Sampler::unipc  ? 2
         : sampler == Sampler::unipc3 ? 3
                                      : 0;
}

NoiseSchedule cosmos(Sampler sampler) {
  NoiseSchedule options;
  options.sampler = sampler;
  options.steps = 8;
  options.sigma_min = 0.002;
  options.sigma_max = 80;
  return options;
}

}  // namespace

TEST_CASE("the noise levels are those of the paper", "[sampler]") {
  // ((80^(1/7) + i/17 (0.002^(1/7) - 80^(1/7)))^7 for i of 0..17, computed with NumPy.
  const auto sigmas = karras_sigmas(18, 0.002, 80);
  REQUIRE(sigmas.size() == 18);
  CHECK(sigmas[0] == Approx(80.0));
  CHECK(sigmas[1] == Approx(57.58598).epsilon(1e-6));
  CHECK(sigmas[9] == Approx(1.92334).epsilon(1e-5));
  CHECK(sigmas[17] == Approx(0.002));
  CHECK(karras_sigmas(1, 0.002, 80) == std::vector<double>{karras_sigmas(1, 0.002, 80)[0]});
  CHECK(karras_sigmas(1, 0.002, 80)[0] == Approx(80.0));
}

TEST_CASE("noise levels that make no sense are refused", "[sampler]") {
  CHECK_THROWS_AS(karras_sigmas(0, 0.002, 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, 0, 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, 80, 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, std::nan(""), 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, 0.1, INFINITY), Error);
  CHECK_THROWS_AS(parse_sampler("heun2"), Error);
  CHECK_NOTHROW(check_sampler(Sampler::lcm, Process::flow));
  CHECK_THROWS_WITH(check_sampler(Sampler::euler, Process::flow),
                    "sampler 'euler' is not for models of flow matching, and this is one: choose "
                    "flow, unipc, unipc1, unipc3, dpm++ or lcm");
  CHECK_THROWS_WITH(check_sampler(Sampler::flow, Process::edm),
                    Catch::Contains("this is none: choose euler, edm-euler, heun, res,"));
}

TEST_CASE("trajectories are those of diffusers' schedulers, and of the RES method's definition",
          "[sampler]") {
  const std::vector<double> bias = GoldenSampling()["bias"];
  const Denoise edm = [&](std::span<const double> x, double sigma, std::span<double> x0) {
    const ProcessLevel c = Process().at(sigma);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto estimate = [&](double b) {
        return c.estimate(x[i], formula(c.in * x[i], c.time, b));
      };
      // Guidance is c + g (c - u).
      const double with = estimate(bias[i]), without = estimate(-bias[i] / 2);
      x0[i] = with + 2 * (with - without);
    }
  };
  check_trajectory(cosmos(Sampler::euler), "edm.zero", edm, 5e-6);
  check_trajectory(cosmos(Sampler::edm_euler), "edm.sigma_min", edm, 5e-6);
  check_trajectory(cosmos(Sampler::res), "res", edm, 1e-10);
  for (const auto& [sampler, name] :
       {std::pair(Sampler::unipc, "edm.unipc2"), std::pair(Sampler::dpm, "edm.dpm")}) {
    NoiseSchedule options = cosmos(sampler);
    options.sigmas = karras_sigmas(9, 0.002, 80);
    check_trajectory(options, name, edm, 1e-10);
  }
  const Denoise straight = [&](std::span<const double> x, double sigma, std::span<double> x0) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x0[i] = x[i] - sigma * formula(x[i], sigma, bias[i]);
  };
  NoiseSchedule options = flow(8);
  check_trajectory(options, "flow.1", straight, 5e-6);
  options.shift = 3;
  check_trajectory(options, "flow.3", straight, 5e-6);
}

TEST_CASE("multistep trajectories are those of diffusers and of Wan's own program", "[sampler]") {
  const std::vector<double> bias = GoldenSampling()["bias"];
  const auto check = [&](Sampler sampler, const std::string& name, SampledAs as, int steps = 8) {
    NoiseSchedule options = flow(steps);
    options.sampler = sampler;
    options.as = as;
    options.shift = as == SampledAs::reference ? 5 : 3;
    const std::vector<double> levels = noise_levels(options), times = noise_times(options);
    const Denoise denoise = [&](std::span<const double> x, double level, std::span<double> x0) {
      const auto at = std::ranges::find(levels, level) - levels.begin();
      for (std::size_t i = 0; i < x.size(); ++i)
        x0[i] = x[i] - level * formula(x[i], times[static_cast<std::size_t>(at)] / 1000, bias[i]);
    };
    check_trajectory(options, name, denoise, 1e-6);
  };
  check(Sampler::unipc1, "unipc1", SampledAs::diffusers);
  check(Sampler::unipc, "unipc2", SampledAs::diffusers);
  check(Sampler::unipc3, "unipc3", SampledAs::diffusers);
  check(Sampler::unipc3, "unipc3.short", SampledAs::diffusers, 3);
  check(Sampler::dpm, "dpm", SampledAs::diffusers);
  check(Sampler::unipc, "unipc2.reference", SampledAs::reference);
  check(Sampler::dpm, "dpm.reference", SampledAs::reference);
}

TEST_CASE("times of multistep samplers are the whole numbers of their schedulers", "[sampler]") {
  const auto check = [](Sampler sampler, SampledAs as, const std::string& name) {
    const std::vector<double> expected = GoldenSampling()["times." + name];
    std::vector<double> times;
    for (const double shift : {1, 3, 5, 8, 12})
      for (const int steps : {3, 4, 9, 27, 50}) {
        NoiseSchedule options = flow(steps);
        options.sampler = sampler;
        options.as = as;
        options.shift = shift;
        for (const double time : noise_times(options))
          times.push_back(time);
      }
    INFO(name);
    CHECK(times == expected);
  };
  check(Sampler::unipc, SampledAs::diffusers, "unipc");
  check(Sampler::dpm, SampledAs::diffusers, "dpm");
  check(Sampler::unipc, SampledAs::reference, "unipc.reference");
  check(Sampler::dpm, SampledAs::reference, "dpm.reference");
  // Others keep the fraction, and EDM has its own times.
  CHECK(noise_times(flow(2)) == std::vector<double>{1000, 1000 * noise_levels(flow(2))[1]});
  CHECK(noise_times(cosmos(Sampler::unipc))[1] ==
        Process().at(noise_levels(cosmos(Sampler::unipc))[1]).time);
}

TEST_CASE("trap 11: 36 steps of diffusers are 35 estimates, 35 of RES are 36", "[sampler]") {
  NoiseSchedule options = cosmos(Sampler::edm_euler);
  options.steps = 36;
  CHECK(evaluations(options) == 35);
  const auto diffusers = noise_levels(options);
  REQUIRE(diffusers.size() == 37);
  CHECK(diffusers[35] == diffusers[36]);  // the last step moves nothing
  CHECK(diffusers[36] == Approx(0.002));
  options.sampler = Sampler::res;
  options.steps = 35;
  CHECK(evaluations(options) == 36);
  const auto res = noise_levels(options);
  REQUIRE(res.size() == 37);
  CHECK(res[35] == Approx(0.002));
  CHECK(res[36] == 0);
  for (std::size_t i = 0; i < 36; ++i)  // the same levels, counted otherwise
    CHECK(res[i] == diffusers[i]);
}

TEST_CASE("samplers have the order that is theirs", "[sampler]") {
  CHECK(order(Sampler::euler) == Approx(1).margin(0.15));
  CHECK(order(Sampler::edm_euler) == Approx(1).margin(0.15));
  CHECK(order(Sampler::heun) == Approx(2).margin(0.15));
  CHECK(order(Sampler::res) == Approx(2).margin(0.2));
  CHECK(order(Sampler::dpm) == Approx(2).margin(0.2));
  CHECK(order(Sampler::unipc1) == Approx(2).margin(0.2));
  CHECK(order(Sampler::unipc) > 2);  // its last step is of order 1
  CHECK(order(Sampler::unipc3) > 2);
  CHECK(std::log2(straight_error(64) / straight_error(128)) == Approx(1).margin(0.15));
  // At the same number of estimates those of second order are nearer.
  CHECK(flow_error(Sampler::heun, 16) < 0.5 * flow_error(Sampler::euler, 32));
  CHECK(flow_error(Sampler::res, 32) < 0.5 * flow_error(Sampler::euler, 32));
  CHECK(flow_error(Sampler::dpm, 32) < 0.5 * flow_error(Sampler::euler, 32));
  for (const Sampler unipc : {Sampler::unipc, Sampler::unipc3})
    CHECK(flow_error(unipc, 32) < 0.5 * flow_error(Sampler::dpm, 32));
}

TEST_CASE("fault 1: Heun corrects at the new point and the new level", "[sampler]") {
  std::vector<std::pair<double, double>> asked;
  SamplerState state{0, {3.0}};
  const Denoise note = [&](std::span<const double> at, double sigma, std::span<double> x0) {
    asked.emplace_back(at[0], sigma);
    x0[0] = 1.0;
  };
  sample({Process::edm, Sampler::heun, {2.0, 1.0, 0.0}, note}, state);
  // The slope is (3 - 1) / 2 = 1, so the predictor stands at 2 when sigma is 1.
  REQUIRE(asked.size() == 3);
  CHECK(asked[0] == std::pair(3.0, 2.0));
  CHECK(asked[1] == std::pair(2.0, 1.0));
  CHECK(asked[2] == std::pair(2.0, 1.0));  // the next step begins where the two slopes agree
  CHECK(state.x[0] == 1.0);
}

TEST_CASE("a step holds no more states and estimates than are told", "[sampler]") {
  for (const auto& [sampler, most] :
       {std::pair(Sampler::euler, 2), std::pair(Sampler::heun, 4), std::pair(Sampler::res, 3),
        std::pair(Sampler::dpm, 3), std::pair(Sampler::unipc, 5), std::pair(Sampler::unipc3, 6)}) {
    CHECK(states_in_memory(sampler) == most);
    const SamplingPath path{Process::edm, sampler, noise_levels(cosmos(sampler)), gaussian,
                            fresh_noise(1, 2)};
    SamplerState state{0, {80}};
    sample(path, state, [&, most = most](const SamplerState& now) {
      CHECK(2 + now.estimates.size() + now.corrected.size() <= static_cast<std::size_t>(most));
    });
  }
}

TEST_CASE("a state without its own earlier estimates is refused", "[sampler]") {
  const Denoise same = [](std::span<const double> x, double, std::span<double> x0) {
    std::ranges::copy(x, x0.begin());
  };
  const SamplingPath path{Process::flow, Sampler::unipc, {0.9, 0.6, 0.3, 0}, same};
  SamplerState state{0, {1, 2}};
  sample_step(path, state);
  for (SamplerState wrong : {SamplerState{1, {1, 2}}, SamplerState{1, {1, 2}, state.estimates},
                             SamplerState{1, {1, 2}, {}, {1, 2}},
                             SamplerState{2, state.x, state.estimates, state.corrected},
                             SamplerState{0, {1, 2}, state.estimates}})
    CHECK_THROWS_WITH(sample_step(path, wrong), Catch::Matchers::Contains("not its own"));
  CHECK_NOTHROW(sample_step(path, state));
}

TEST_CASE("a way that is broken off goes on as if it were not", "[sampler]") {
  const Denoise wave = [](std::span<const double> x, double sigma, std::span<double> x0) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x0[i] = std::sin(x[i]) / (1 + sigma);
  };
  for (const Sampler sampler :
       {Sampler::euler, Sampler::edm_euler, Sampler::heun, Sampler::res, Sampler::unipc,
        Sampler::unipc1, Sampler::unipc3, Sampler::dpm, Sampler::lcm}) {
    const SamplingPath path{Process::edm, sampler, noise_levels(cosmos(sampler)), wave,
                            fresh_noise(1, 2)};
    SamplerState whole{0, {80, -40, 3}};
    sample(path, whole);
    for (std::size_t stop = 0; stop < path.levels.size(); ++stop) {
      SamplerState state{0, {80, -40, 3}};
      while (static_cast<std::size_t>(state.step) < stop)
        sample_step(path, state);
      const std::size_t most =
          sampler == Sampler::res || sampler == Sampler::dpm ? 1 : corrector_order(sampler);
      if (stop + 1 < path.levels.size()) CHECK(state.estimates.size() == std::min(stop, most));
      SamplerState other = state;  // all that a file holds
      sample(path, other);
      CHECK(other.x == whole.x);
      CHECK(other.step == whole.step);
    }
  }
}

TEST_CASE("the number of estimates is as told", "[sampler]") {
  const auto check = [](NoiseSchedule options) {
    int count = 0;
    SamplerState state{0, std::vector<double>(4, 1.0)};
    const Denoise constant = [&](std::span<const double>, double, std::span<double> x0) {
      ++count;
      std::ranges::fill(x0, 0.25);
    };
    sample({options.process, options.sampler, noise_levels(options), constant, fresh_noise(1, 2)},
           state);
    CHECK(count == evaluations(options));
    CHECK((options.sampler == Sampler::edm_euler || state.x == std::vector<double>(4, 0.25)));
  };
  for (const std::string_view name : sampler_names()) {
    const Sampler sampler = parse_sampler(name);
    CHECK(to_string(sampler) == name);
    for (const int steps : {1, 2, 7}) {
      if (sampler == Sampler::edm_euler && steps == 1) continue;
      NoiseSchedule options = cosmos(sampler);
      options.process = process_of(sampler).value_or(options.process);
      options.steps = steps;
      check(options);
      for (int i = 0; i < steps; ++i)
        options.sigmas.push_back(1 - 0.1 * i);
      options.steps = 5;  // is not asked
      check(options);
    }
  }
}

TEST_CASE("lcm adds fresh noise of the next level to the estimate", "[sampler]") {
  constexpr std::uint64_t kSeed = 5, kKey = 6;
  const std::vector<double> sigmas = {1, 0.757, 0.522, 0};  // as students of 3 steps have them
  const Denoise ask = [](std::span<const double> x, double sigma, std::span<double> x0) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x0[i] = 0.5 * x[i] + sigma;
  };
  for (const Process process : {Process::edm, Process::flow}) {
    SamplerState state{0, {0.25, -2}};
    const SamplingPath path{process, Sampler::lcm, sigmas, ask, fresh_noise(kSeed, kKey)};
    std::vector<double> expected = state.x;
    for (int step = 1; step < 4; ++step) {
      sample_step(path, state);
      const double before = sigmas[static_cast<std::size_t>(step) - 1];
      const double level = sigmas[static_cast<std::size_t>(step)];
      const Random random(kSeed, Purpose::sampler_noise, static_cast<std::uint32_t>(step), kKey);
      for (std::size_t i = 0; i < 2; ++i) {
        const double x0 = 0.5 * expected[i] + before;
        const double keep = process == Process::flow ? 1 - level : 1;
        expected[i] = step == 3 ? x0 : keep * x0 + level * random.normal(i);
        CHECK(state.x[i] == Approx(expected[i]));
      }
    }
    CHECK(state.step == 3);
  }
}

// f(x) = s x / (standard deviation of x) takes noisy values of N(0, s^2) to clean ones. So the
// samples keep that deviation if each level's noise is independent of what came before, and the
// mixture is that of the model.
TEST_CASE("lcm with an exact model of a Gaussian draws from it", "[sampler]") {
  for (const Process process : {Process::edm, Process::flow}) {
    const bool flow = process == Process::flow;
    const std::vector<double> sigmas = {flow ? 1 : 80.0, 0.8, 0.4, 0.1, 0};
    const Denoise exact = [&](std::span<const double> x, double sigma, std::span<double> x0) {
      const double clean = (flow ? 1 - sigma : 1) * kSpread;
      for (std::size_t i = 0; i < x.size(); ++i)
        x0[i] = kSpread * x[i] / std::sqrt(clean * clean + sigma * sigma);
    };
    const FreshNoise fresh = fresh_noise(1, 2);
    std::vector<float> noise(20000);
    fresh(0, noise);
    SamplerState state{0, std::vector<double>(noise.begin(), noise.end())};
    for (double& x : state.x)
      x *= sigmas[0];
    sample({process, Sampler::lcm, sigmas, exact, fresh}, state);
    double square = 0;
    for (const double x : state.x)
      square += x * x / static_cast<double>(state.x.size());
    CHECK(std::sqrt(square) == Approx(kSpread).epsilon(0.02));
  }
}

TEST_CASE("noise levels may be given themselves", "[sampler]") {
  NoiseSchedule options;
  const auto levels = [&](Sampler sampler, std::vector<double> sigmas) {
    options.sampler = sampler;
    options.sigmas = std::move(sigmas);
    return noise_levels(options);
  };
  CHECK(levels(Sampler::euler, {5, 2}) == std::vector<double>{5.0, 2.0, 0.0});
  CHECK(levels(Sampler::edm_euler, {5, 2}) == std::vector<double>{5.0, 2.0, 2.0});
  CHECK(levels(Sampler::res, {5, 2}) == std::vector<double>{5.0, 2.0, 0.0});
  CHECK(levels(Sampler::lcm, {5}) == std::vector<double>{5.0, 0.0});
  for (const double wrong : {0.0, -1.0, 3.0, 4.0, double{NAN}, double{INFINITY}})
    CHECK_FALSE(usage_error([&] { levels(Sampler::euler, {3, wrong}); }).empty());
  CHECK_FALSE(usage_error([&] { levels(Sampler::euler, {2e6}); }).empty());
  CHECK_FALSE(usage_error([&] { levels(Sampler::edm_euler, {3}); }).empty());
  CHECK(levels(Sampler::lcm, {1.1, 0.5}).size() == 3);
  options.process = Process::flow;
  CHECK(levels(Sampler::flow, {1, 0.5}) == std::vector<double>{1, 0.5, 0});
  CHECK_FALSE(usage_error([&] { levels(Sampler::flow, {1.1, 0.5}); }).empty());
  CHECK_FALSE(usage_error([&] { levels(Sampler::lcm, {1.1, 0.5}); }).empty());
  // At level 1 of flow matching a corrector has no lambda.
  CHECK(levels(Sampler::unipc, {1, 0.5}) == std::vector<double>{double{1.0f - 1e-6f}, 0.5, 0});
  CHECK(levels(Sampler::dpm, {1, 0.5}) == std::vector<double>{1, 0.5, 0});
  CHECK(first_deviation(options) == 1);
  // Levels that differ, and not as float.
  CHECK(levels(Sampler::flow, {0.5, 0.5 - 1e-9}).size() == 3);
  for (const Sampler rounding : {Sampler::unipc, Sampler::dpm})
    CHECK_THAT(usage_error([&] {
                 levels(rounding, {0.5, 0.5 - 1e-9});
               }),
               Catch::Contains("noise level 0.5 follows 0.5, because"));
  options.sigmas = {0.1, 0.05};
  for (const Sampler sampler : {Sampler::dpm, Sampler::unipc, Sampler::flow, Sampler::lcm}) {
    options.sampler = sampler;
    CHECK(first_deviation(options) == 0.1);
  }
}

TEST_CASE("a student of four steps of Euler is sampled at its own levels", "[sampler]") {
  NoiseSchedule options = flow(4);
  options.sigmas = {1, 0.9375, 0.8333, 0.625};
  SamplerState state{0, {1}};
  const Denoise same = [](std::span<const double> x, double sigma, std::span<double> x0) {
    x0[0] = x[0] - sigma * x[0];  // the velocity is x
  };
  sample({Process::flow, Sampler::flow, noise_levels(options), same}, state);
  CHECK(state.x[0] == Approx((1 - 0.0625) * (1 - 0.1042) * (1 - 0.2083) * (1 - 0.625)));
}
