// SPDX-License-Identifier: Apache-2.0
#include "generate/sampler.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/error.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

// For data N(0, s^2) the best estimate is D(x; sigma) = s^2 / (s^2 + sigma^2) x, and the flow is
// known: x(sigma) = x(sigma_max) sqrt((s^2 + sigma^2) / (s^2 + sigma_max^2)).
constexpr double kSpread = 0.5;

void gaussian(std::span<const double> x, double sigma, std::span<double> x0) {
  for (std::size_t i = 0; i < x.size(); ++i)
    x0[i] = kSpread * kSpread / (kSpread * kSpread + sigma * sigma) * x[i];
}

double flow_error(Sampler sampler, int steps) {
  auto sigmas = karras_sigmas(steps, 0.05, 20);
  sigmas.pop_back();  // the last step, to zero, is Euler in both: leave it out of the order
  std::vector<double> x = {20.0};
  sample(sampler, sigmas, gaussian, x);
  const double exact =
      20.0 * std::sqrt((kSpread * kSpread + 0.05 * 0.05) / (kSpread * kSpread + 20.0 * 20.0));
  return std::abs(x[0] - exact);
}

double order(Sampler sampler) {
  return std::log2(flow_error(sampler, 64) / flow_error(sampler, 128));
}

}  // namespace

TEST_CASE("the noise levels are those of the paper", "[sampler]") {
  // ((80^(1/7) + i/17 (0.002^(1/7) - 80^(1/7)))^7 for i of 0..17, computed with NumPy.
  const auto sigmas = karras_sigmas(18, 0.002, 80);
  REQUIRE(sigmas.size() == 19);
  CHECK(sigmas[0] == Approx(80.0));
  CHECK(sigmas[1] == Approx(57.58598).epsilon(1e-6));
  CHECK(sigmas[9] == Approx(1.92334).epsilon(1e-5));
  CHECK(sigmas[17] == Approx(0.002));
  CHECK(sigmas[18] == 0);
  CHECK(karras_sigmas(1, 0.002, 80) == std::vector<double>{karras_sigmas(1, 0.002, 80)[0], 0.0});
  CHECK(karras_sigmas(1, 0.002, 80)[0] == Approx(80.0));
}

TEST_CASE("noise levels that make no sense are refused", "[sampler]") {
  CHECK_THROWS_AS(karras_sigmas(0, 0.002, 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, 0, 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, 80, 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, std::nan(""), 80), Error);
  CHECK_THROWS_AS(karras_sigmas(8, 0.1, INFINITY), Error);
  CHECK_THROWS_AS(parse_sampler("heun2"), Error);
}

TEST_CASE("Euler is of first order, Heun of second", "[sampler]") {
  CHECK(order(Sampler::euler) == Approx(1).margin(0.15));
  CHECK(order(Sampler::heun) == Approx(2).margin(0.15));
  // At the same number of estimates Heun is nearer.
  CHECK(flow_error(Sampler::heun, 16) < 0.5 * flow_error(Sampler::euler, 32));
}

TEST_CASE("Heun corrects at the new point and the new level", "[sampler]") {
  std::vector<std::pair<double, double>> asked;
  std::vector<double> x = {3.0};
  const std::vector<double> sigmas = {2.0, 1.0, 0.0};
  sample(
      Sampler::heun, sigmas,
      [&](std::span<const double> at, double sigma, std::span<double> x0) {
        asked.emplace_back(at[0], sigma);
        x0[0] = 1.0;
      },
      x);
  // The slope is (3 - 1) / 2 = 1, so the predictor stands at 2 when sigma is 1.
  REQUIRE(asked.size() == 3);
  CHECK(asked[0] == std::pair(3.0, 2.0));
  CHECK(asked[1] == std::pair(2.0, 1.0));
  CHECK(asked[2] == std::pair(2.0, 1.0));  // the next step begins where the two slopes agree
  CHECK(x[0] == 1.0);
}

TEST_CASE("the number of estimates is as told", "[sampler]") {
  for (const Sampler sampler : {Sampler::euler, Sampler::heun}) {
    for (const int steps : {1, 2, 7}) {
      int count = 0;
      std::vector<double> x(4, 1.0);
      sample(
          sampler, karras_sigmas(steps, 0.02, 40),
          [&](std::span<const double>, double, std::span<double> x0) {
            ++count;
            for (double& value : x0)
              value = 0.25;
          },
          x);
      CHECK(count == evaluations(sampler, steps));
      CHECK(x == std::vector<double>(4, 0.25));
    }
  }
}
