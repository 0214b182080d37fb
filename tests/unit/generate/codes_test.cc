// Codes drawn from logits, and written by a decoder.
// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/codes.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/error.h"
#include "dist/threads.h"
#include "generate/ranks/clip_network.h"
#include "generate/sampling/sample_options.h"
#include "models/dit/pipeline_stages.h"
#include "support/noise.h"

using namespace vfm;
using generate::CodeJob;
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
  const auto write = [&](std::uint64_t seed, std::vector<std::int32_t> given) {
    const CodeJob job = {{2, 2, 3, 1}, {}, std::move(given), {1, 1}, seed, 5};
    return generate::write_codes(decoder, std::span(&job, 1)).front();
  };
  const std::vector<std::int32_t> codes = write(1, {});
  CHECK(codes.size() == 12);
  CHECK(write(1, {}) == codes);
  CHECK(write(2, {}) != codes);
  // What is given takes the place of what would be drawn; the rest is drawn by its own place.
  const std::vector<std::int32_t> again = write(1, {codes.begin(), codes.begin() + 5});
  CHECK(again == codes);
  const std::vector<std::int32_t> given = {8, 7, 6};
  const std::vector<std::int32_t> begun = write(1, given);
  CHECK(std::vector<std::int32_t>(begun.begin(), begun.begin() + 3) == given);
  CHECK_THROWS_AS(write(1, std::vector<std::int32_t>(13)), Error);
  CHECK_THROWS_AS(write(1, std::vector<std::int32_t>{9}), Error);
}

TEST_CASE("ranks that share a decoder write the codes of one rank, of several videos at a time") {
  models::DecoderConfig config = tiny();
  config.vocabulary = 101;
  config.num_attention_heads = 4, config.num_key_value_heads = 2;
  config.num_layers = 3;
  config.text_embed_dim = 5;
  std::vector<CodeJob> jobs;
  for (const double temperature : {0.0, 1.0, 0.7}) {
    CodeJob& job = jobs.emplace_back();
    const auto frames = static_cast<int>(jobs.size());
    job.sample = {frames, 2, 3, 2};
    job.text = noise(10, jobs.size());
    job.options = {temperature, 0.9};
    job.seed = 3, job.key = jobs.size();
    if (frames == 3) job.given = {9, 99, 0, 1};
  }
  using Codes = std::vector<std::vector<std::int32_t>>;
  const auto write = [&](const char* parallel, DType compute, std::span<const CodeJob> videos) {
    Codes codes;
    const dist::Layout layout = generate::parse_parallel(parallel);
    dist::thread_worlds(layout.sharers(), [&](dist::World& world) {
      const generate::ClipRanks ranks(world, layout);
      const models::CausalDecoder decoder(config, 1, compute, Device::cpu, true,
                                          models::writing_layout(config, ranks.network()));
      generate::ClipNetwork network(decoder, ranks);
      if (!ranks.leads()) return network.serve(nullptr);
      std::vector<std::int64_t> steps(videos.size());
      codes = network.write(videos, [&](std::size_t video, std::int64_t done, std::int64_t total) {
        steps[video] += done == steps[video] + 1 && done <= total ? 1 : 1000;
      });
      network.end();
      for (std::size_t i = 0; i < videos.size(); ++i)
        if (steps[i] != videos[i].sample.codes()) codes.clear();
    });
    return codes;
  };
  for (const DType compute : {DType::f32, DType::bf16}) {
    const models::CausalDecoder decoder(config, 1, compute);
    Codes one;
    for (const CodeJob& job : jobs)
      one.push_back(generate::write_codes(decoder, std::span(&job, 1)).front());
    CHECK(one[0] != std::vector<std::int32_t>(6, one[0][0]));
    for (const char* const parallel : {"tp=2", "pp=2", "pp=3", "pp=3,tp=2"}) {
      INFO(parallel << ", " << dtype_name(compute));
      CHECK(write(parallel, compute, jobs) == one);
    }
    CHECK(write("pp=3", compute, std::span(jobs).first(1)) == Codes{one[0]});
  }
}
