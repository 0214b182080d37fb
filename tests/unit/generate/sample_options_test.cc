// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/sample_options.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"

using namespace vfm;
using namespace vfm::generate;
using models::Sampler;

TEST_CASE("sampling options out of range are refused", "[sampler]") {
  const auto refused = [](auto change) {
    SampleOptions options;
    change(options);
    CHECK_THROWS_AS(options.validate(), Error);
  };
  CHECK_NOTHROW(SampleOptions{}.validate());
  refused([](SampleOptions& o) { o.steps = 0; });
  for (const double guidance : {std::nan(""), 1e300, -1001.0, 1000.5}) {
    refused([=](SampleOptions& o) { o.guidance = guidance; });
    refused([=](SampleOptions& o) { o.guidance_low = guidance; });
  }
  SampleOptions strong;
  strong.guidance = 1000, strong.guidance_low = -1000;
  CHECK_NOTHROW(strong.validate());
  refused([](SampleOptions& o) { o.sampler = Sampler::res, o.steps = 0; });
  refused([](SampleOptions& o) { o.sampler = Sampler::res, o.steps = -1; });
  refused([](SampleOptions& o) { o.sampler = Sampler::edm_euler, o.steps = 1; });
  refused([](SampleOptions& o) { o.process = models::Process::flow, o.steps = 0; });
  // 1 / (1 + (1e-17 - 1)) is infinite.
  for (const double shift : {0.0, -1.0, 1e-17, 1e17, std::nan(""), double{INFINITY}})
    refused([=](SampleOptions& o) { o.process = models::Process::flow, o.shift = shift; });
}

TEST_CASE("the boundary itself is a level of the first of two networks", "[sampler]") {
  SampleOptions options;
  options.process = models::Process::flow;
  options.sigmas = {1, 0.95, 0.9, 0.5, 0.25};
  // 0.9 is less as float.
  for (const Sampler sampler : {Sampler::flow, Sampler::unipc, Sampler::dpm, Sampler::lcm}) {
    options.sampler = sampler;
    const std::vector<double> levels = noise_levels(options);
    for (std::size_t i = 0; i < levels.size(); ++i)
      CHECK(network_of(levels[i], 0.9) == (i < 3 ? 0 : 1));
    CHECK(network_of(levels[2], 0.901) == 1);
    CHECK(first_network_steps(options, 0.9) == 3);
    CHECK(first_network_steps(options, 0.3) == 4);
    // The last step is not among them.
    CHECK(first_network_steps(options, 0.2) == 4);
  }
  options.sampler = Sampler::flow;
  CHECK(first_network_steps(options, 0.9999) == 1);
  options.sigmas = {0.5, 0.25};
  CHECK(first_network_steps(options, 0.9) == 0);
  options.sigmas = {0.95};
  CHECK(first_network_steps(options, 0.9) == 0);
}

TEST_CASE("noise levels are read from text", "[sampler]") {
  CHECK(parse_sigmas("1,.9375,8e-1") == std::vector<double>{1, 0.9375, 0.8});
  for (const char* text : {"", ",", "1,", "1,,2", "1;2", "1, 2", "x", "1,2x"})
    CHECK_THROWS_AS(parse_sigmas(text), Error);
}
