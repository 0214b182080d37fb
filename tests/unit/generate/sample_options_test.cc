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
  refused([](SampleOptions& o) { o.guidance = std::nan(""); });
  refused([](SampleOptions& o) { o.guidance_low = std::nan(""); });
  refused([](SampleOptions& o) { o.sampler = Sampler::res, o.steps = 0; });
  refused([](SampleOptions& o) { o.sampler = Sampler::res, o.steps = -1; });
  refused([](SampleOptions& o) { o.sampler = Sampler::edm_euler, o.steps = 1; });
  refused([](SampleOptions& o) { o.process = models::Process::flow, o.steps = 0; });
  refused([](SampleOptions& o) { o.process = models::Process::flow, o.shift = 0; });
  refused([](SampleOptions& o) { o.process = models::Process::flow, o.shift = std::nan(""); });
}

TEST_CASE("noise levels are read from text", "[sampler]") {
  CHECK(parse_sigmas("1,.9375,8e-1") == std::vector<double>{1, 0.9375, 0.8});
  for (const char* text : {"", ",", "1,", "1,,2", "1;2", "1, 2", "x", "1,2x"})
    CHECK_THROWS_AS(parse_sigmas(text), Error);
}
