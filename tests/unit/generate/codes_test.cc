// Codes drawn from logits, and written by a decoder.
// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/codes.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/error.h"
#include "generate/sampling/sample_options.h"

using namespace vfm;
using generate::CodeOptions;
using generate::draw_code;

namespace {

// Probabilities 0.4, 0.3, 0.2, 0.1 of the codes 2, 0, 3, 1.
const std::vector<float> kLogits = {std::log(0.3f), std::log(0.1f), std::log(0.4f), std::log(0.2f)};

std::map<std::int32_t, int> draw(const CodeOptions& options) {
  std::map<std::int32_t, int> counts;
  constexpr int kDraws = 1000;
  for (int i = 0; i < kDraws; ++i)
    ++counts[draw_code(kLogits, options, (i + 0.5) / kDraws)];
  return counts;
}

models::DecoderConfig tiny() {
  models::DecoderConfig c;
  c.vocabulary = 9;
  c.num_attention_heads = 2;
  c.num_key_value_heads = 1;
  c.attention_head_dim = 12;
  c.num_layers = 1;
  c.mlp_ratio = 1;
  return c;
}

}  // namespace

TEST_CASE("codes are drawn by their probabilities, the likeliest first") {
  using Counts = std::map<std::int32_t, int>;
  CHECK(draw({1, 1}) == Counts{{2, 400}, {0, 300}, {3, 200}, {1, 100}});
  // 0.4 alone is not 0.5, with 0.3 it is: these two share what is drawn.
  CHECK(draw({1, 0.5}) == Counts{{2, 571}, {0, 429}});
  CHECK(draw({1, 1e-9}) == Counts{{2, 1000}});
  CHECK(draw({0, 1}) == Counts{{2, 1000}});
  // At half the temperature probabilities are squared.
  CHECK(draw({0.5, 1}) == Counts{{2, 533}, {0, 300}, {3, 134}, {1, 33}});
  const std::vector<float> equal = {1, 1, 1, 1};
  CHECK(draw_code(equal, {1, 1}, 0.3) == 1);
  CHECK(draw_code(equal, {0, 1}, 0.9) == 0);
  CHECK_THROWS_AS(draw_code(std::vector<float>{0, std::nanf("")}, {1, 1}, 0.5), Error);
  generate::SampleOptions sampling;
  sampling.temperature = -1;
  CHECK_THROWS_AS(sampling.validate(), Error);
  sampling.temperature = 0;
  sampling.top_p = 0;
  CHECK_THROWS_AS(sampling.validate(), Error);
}

TEST_CASE("a video's codes depend on the seed, and begin with those that are given") {
  const models::CausalDecoder decoder(tiny(), 1);
  const models::CodeSample sample{2, 2, 3, 1};
  const auto write = [&](std::uint64_t seed, std::span<const std::int32_t> given) {
    return generate::write_codes(decoder, sample, Tensor(), given, {1, 1},
                                 Random(seed, Purpose::sampler_noise, 0, 5));
  };
  const std::vector<std::int32_t> codes = write(1, {});
  CHECK(codes.size() == 12);
  CHECK(write(1, {}) == codes);
  CHECK(write(2, {}) != codes);
  // What is given takes the place of what would be drawn; the rest is drawn by its own place.
  const std::vector<std::int32_t> again = write(1, std::span(codes).first(5));
  CHECK(again == codes);
  const std::vector<std::int32_t> given = {8, 7, 6};
  const std::vector<std::int32_t> begun = write(1, given);
  CHECK(std::vector<std::int32_t>(begun.begin(), begun.begin() + 3) == given);
  CHECK_THROWS_AS(write(1, std::vector<std::int32_t>(13)), Error);
  CHECK_THROWS_AS(write(1, std::vector<std::int32_t>{9}), Error);
}
