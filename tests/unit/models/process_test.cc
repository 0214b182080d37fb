// SPDX-License-Identifier: Apache-2.0
#include "models/process/process.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>

using namespace vfm::models;

namespace {

constexpr std::array kProcesses = {Process(Process::edm), Process(Process::flow)};
constexpr double kX0 = 0.7, kNoise = -1.3;

double mixed(const ProcessLevel& at) {
  return at.keep * kX0 + at.noise * kNoise;
}

}  // namespace

TEST_CASE("preconditioning has the published values", "[process]") {
  // sigma = sigma_data = 0.5: every root is that of one half.
  const ProcessLevel at_half = Process().at(0.5);
  CHECK(at_half.skip == Approx(0.5));
  CHECK(at_half.out == Approx(0.25 / std::sqrt(0.5)));
  CHECK(at_half.in == Approx(1 / std::sqrt(0.5)));
  CHECK(at_half.time == Approx(0.25 * std::log(0.5)));
  // sigma = 80, by hand: variance 6400.25.
  const ProcessLevel high = Process().at(80);
  CHECK(high.skip == Approx(3.906097e-5).epsilon(1e-6));
  CHECK(high.out == Approx(0.49999023).epsilon(1e-7));
  CHECK(high.in == Approx(0.012499756).epsilon(1e-6));
  CHECK(high.time == Approx(1.095506658).epsilon(1e-8));
  // Flow matching: the output is the velocity e - x0, the time counts to 1000.
  const ProcessLevel flow = Process(Process::flow).at(0.25);
  CHECK((flow.keep == 0.75 && flow.noise == 0.25));
  CHECK((flow.in == 1 && flow.time == 250));
  CHECK(flow.target(kX0, kNoise) == kNoise - kX0);
}

TEST_CASE("the network's input and target have unit variance at every noise level", "[process]") {
  for (const double sigma : {0.002, 0.1, 0.5, 3.0, 80.0}) {
    const ProcessLevel c = Process().at(sigma);
    const double data = kSigmaData * kSigmaData;
    CHECK(c.in * c.in * (data + sigma * sigma) == Approx(1));
    CHECK(c.of_x0 * c.of_x0 * data + c.of_noise * c.of_noise == Approx(1));
    // The weight of (D - x0)^2 in the loss as it was published.
    CHECK((sigma * sigma + data) / (sigma * sigma * data) == Approx(c.weight()));
  }
}

TEST_CASE("the network's target in training and its estimate in sampling are inverse of each other",
          "[process]") {
  for (const Process process : kProcesses) {
    for (const double sigma : {0.0002, 0.03, 0.5, 1.0, 7.0, 80.0}) {
      const ProcessLevel at = process.at(process.level_of(sigma));
      const double x = mixed(at), target = at.target(kX0, kNoise);
      CHECK(at.estimate(x, target) == Approx(kX0));
      CHECK(target == Approx((kX0 - at.skip * x) / at.out));
      // So an error of F is one of the estimate, and weighs the same at every level.
      const double error = at.estimate(x, target + 0.1) - kX0;
      CHECK(at.weight() * error * error == Approx(0.01));
    }
  }
}

TEST_CASE("a process ends with the clean latent, and begins with noise", "[process]") {
  for (const Process process : kProcesses) {
    const ProcessLevel clean = process.at(0), noise = process.at(process.highest());
    CHECK(mixed(clean) == kX0);
    CHECK(clean.estimate(kX0, 123) == kX0);  // whatever the network says
    // Scaled to the variance of noise, nothing is left of x0.
    CHECK(mixed(noise) / noise.noise == Approx(kNoise).epsilon(1e-5));
  }
  CHECK(mixed(Process(Process::flow).at(1)) == kNoise);
}

TEST_CASE("EDM and flow matching are one process on two scales", "[process]") {
  const Process edm, flow = Process::flow;
  for (const double sigma : {0.01, 0.5, 1.0, 40.0}) {
    const double t = flow.level_of(sigma);
    CHECK(t == Approx(sigma / (1 + sigma)));
    CHECK(flow.sigma_of(t) == Approx(sigma));
    CHECK((edm.level_of(sigma) == sigma && edm.sigma_of(sigma) == sigma));
    CHECK(mixed(flow.at(t)) == Approx(mixed(edm.at(sigma)) / (1 + sigma)));
    // The shift and the distribution of training's levels are said of sigma.
    CHECK(flow.shifted(t, 3) == Approx(flow.level_of(edm.shifted(sigma, 3))));
    CHECK(edm.quantile(0.2, 0.7, 1.2) == Approx(flow.sigma_of(flow.quantile(0.2, 0.7, 1.2))));
  }
  CHECK(edm.quantile(0.5, std::log(3), 1.2) == Approx(3));
  CHECK(flow.quantile(0.5, std::log(3), 1.2) == Approx(0.75));
  CHECK((flow.shifted(0, 3) == 0 && flow.shifted(1, 3) == 1));
}
