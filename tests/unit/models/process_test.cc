// SPDX-License-Identifier: Apache-2.0
#include "models/process/process.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace vfm::models;

TEST_CASE("preconditioning has the published values", "[process]") {
  // sigma = sigma_data = 0.5: every root is that of one half.
  const EdmScaling at_half = edm_scaling(0.5);
  CHECK(at_half.skip == Approx(0.5));
  CHECK(at_half.out == Approx(0.25 / std::sqrt(0.5)));
  CHECK(at_half.in == Approx(1 / std::sqrt(0.5)));
  CHECK(at_half.noise == Approx(0.25 * std::log(0.5)));
  // sigma = 80, by hand: variance 6400.25.
  const EdmScaling high = edm_scaling(80);
  CHECK(high.skip == Approx(3.906097e-5).epsilon(1e-6));
  CHECK(high.out == Approx(0.49999023).epsilon(1e-7));
  CHECK(high.in == Approx(0.012499756).epsilon(1e-6));
  CHECK(high.noise == Approx(1.095506658).epsilon(1e-8));
}

TEST_CASE("the network's input and target have unit variance at every noise level", "[process]") {
  for (const double sigma : {0.002, 0.1, 0.5, 3.0, 80.0}) {
    const EdmScaling c = edm_scaling(sigma);
    const double data = kSigmaData * kSigmaData;
    CHECK(c.in * c.in * (data + sigma * sigma) == Approx(1));
    // Target (x0 - c_skip (x0 + sigma e)) / c_out.
    const double target =
        ((1 - c.skip) * (1 - c.skip) * data + c.skip * c.skip * sigma * sigma) / (c.out * c.out);
    CHECK(target == Approx(1));
    // lambda, the weight of (D - x0)^2 in the loss, is 1 / c_out^2.
    CHECK((sigma * sigma + data) / (sigma * sigma * data) * c.out * c.out == Approx(1));
  }
}
