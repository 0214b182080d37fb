// Requests on their way to other ranks, and results on theirs back.
// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/rounds.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"

using namespace vfm;
using namespace vfm::generate;
using models::Sampler;

namespace {

NamedRequest full_request() {
  NamedRequest request;
  ClipRequest& clip = request.clip;
  clip.prompt = "a red circle\n\"moves\"";
  clip.negative = "blur";
  clip.seed = 0xfedcba9876543210u;
  clip.frames = 9;
  clip.height = 4;
  clip.width = 6;
  clip.fps = 23.976;
  clip.given = std::make_shared<const GivenFrames>(GivenFrames{1, {0.5f, -0.25f}});
  clip.noise = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2, 3});
  clip.embedding =
      std::make_shared<const text::TokenEmbeddings>(text::TokenEmbeddings{{4, 5}, 2, 1});
  request.sampling.steps = 7;
  request.sampling.guidance = -0.1;
  request.sampling.guidance_low = 0.25;
  request.sampling.sampler = Sampler::lcm;
  request.sampling.sigmas = {1, 0.5};
  request.sampling.process = models::Process::flow;
  request.sampling.as = models::SampledAs::reference;
  request.sampling.diffusers = {.steps = 50, .guidance = 4, .shift = 3};
  request.files.condition = {"a.png", "0123"};
  request.files.noise = {"n.npy", {}};
  request.files.condition_frames = 9;
  request.name = "name";
  request.encoder = "ffv1";
  request.quality = 3;
  request.extra = Json{{"label", "kept"}, {"list", {1, 2}}};
  return request;
}

}  // namespace

TEST_CASE("a request comes whole to another rank") {
  const NamedRequest sent = full_request();
  const std::string bytes = pack(sent);
  NamedRequest got;
  unpack(bytes, got);
  CHECK(pack(got) == bytes);
  CHECK(got.clip.prompt == sent.clip.prompt);
  CHECK(got.clip.negative == sent.clip.negative);
  CHECK(got.clip.seed == sent.clip.seed);
  CHECK(std::vector{got.clip.frames, got.clip.height, got.clip.width} == std::vector{9, 4, 6});
  CHECK(got.clip.fps == sent.clip.fps);
  REQUIRE(got.clip.given);
  CHECK(got.clip.given->frames == 1);
  CHECK(got.clip.given->pixels == sent.clip.given->pixels);
  CHECK(*got.clip.noise == *sent.clip.noise);
  CHECK(got.clip.embedding->values == sent.clip.embedding->values);
  CHECK(got.clip.embedding->tokens == 2);
  CHECK(!got.clip.negative_embedding);
  CHECK(got.sampling.steps == 7);
  CHECK(got.sampling.guidance == -0.1);
  CHECK(got.sampling.guidance_low == 0.25);
  CHECK(got.sampling.sampler == Sampler::lcm);
  CHECK(got.sampling.sigmas == std::vector<double>{1, 0.5});
  CHECK(got.sampling.process == models::Process::flow);
  CHECK(got.sampling.as == models::SampledAs::reference);
  CHECK(got.sampling.diffusers == models::InDiffusers{50, 4, 3});
  CHECK(got.files.condition.path == "a.png");
  CHECK(got.files.condition.xxh3 == "0123");
  CHECK(!got.files.noise.xxh3);
  CHECK(got.files.condition_frames == 9);
  CHECK(got.name == "name");
  CHECK(got.encoder == "ffv1");
  CHECK(got.quality == 3);
  CHECK(got.extra == sent.extra);
  CHECK_THROWS_AS(unpack(std::string_view(bytes).substr(0, bytes.size() - 1), got), Error);
  CHECK_THROWS_WITH(unpack(bytes + "x", got), Catch::Contains("1 byte after its last value"));
}

TEST_CASE("a round is dealt by cost, faults stay, and results come back in order") {
  for (const int ranks : {1, 2, 3, 7}) {
    INFO("ranks " << ranks);
    std::mutex mutex;
    std::map<int, std::set<std::string>> made_by;
    std::vector<Result> results;
    std::atomic<int> told = 0;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      std::vector<int> all(static_cast<std::size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      const auto group = world.group("clips", all);
      for (const bool more : {true, false}) {
        std::vector<Asked> asked;
        std::vector<std::uint64_t> costs;
        std::optional<double> fp8_error;
        if (world.rank() == 0) {
          for (int i = 0; i < 6; ++i) {
            NamedRequest request = full_request();
            request.name = std::to_string(i) + (more ? "a" : "b");
            asked.push_back(
                {std::make_shared<NamedRequest>(request), "line " + std::to_string(i), ""});
            costs.push_back(i == 0 ? 100 : 10);
          }
          asked[2] = {nullptr, "line 2", "no such file"};
          costs[2] = 0;
          fp8_error = 0.25;
        }
        Round round(*group, std::move(asked), costs, more, fp8_error);
        if (round.more() == more && fp8_error == 0.25) ++told;
        std::vector<Result> mine;
        for (Asked& one : round.mine()) {
          Result result;
          result.asked = std::move(one);
          result.record = Json{{"name", result.asked.request->name}, {"rank", world.rank()}};
          result.seconds = 1.5;
          result.made = false;
          result.latent = {1, 1, 1, 2, {0.5f, -2}};
          if (result.asked.request->name[0] == '4')
            result.asked.error = "failed", result.asked.cause = Cause::memory;
          const std::lock_guard lock(mutex);
          made_by[world.rank()].insert(result.asked.request->name);
          mine.push_back(std::move(result));
        }
        std::vector<Result> all_results = round.collect(std::move(mine));
        if (world.rank() > 0 && !all_results.empty()) told = -100;
        for (Result& result : all_results)
          results.push_back(std::move(result));
      }
    });
    CHECK(told == 2 * ranks);
    REQUIRE(results.size() == 12);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& result = results[i];
      const std::string number = std::to_string(i % 6);
      CHECK(result.asked.where == "line " + number);
      if (i % 6 == 2) {
        CHECK(result.asked.error == "no such file");
        continue;
      }
      CHECK(result.record["name"] == number + (i < 6 ? "a" : "b"));
      CHECK(result.asked.request->name == number + (i < 6 ? "a" : "b"));
      CHECK(result.asked.error == (i % 6 == 4 ? "failed" : ""));
      CHECK(result.asked.cause == (i % 6 == 4 ? Cause::memory : Cause::line));
      CHECK(result.latent.values == std::vector<float>{0.5f, -2});
      CHECK_FALSE(result.made);
      CHECK(result.seconds == 1.5);
    }
    // The one that costs as much as ten goes to a rank of its own where there are several.
    std::size_t total = 0;
    for (const auto& [rank, names] : made_by) {
      total += names.size();
      if (ranks > 1 && names.count("0a")) CHECK(names == std::set<std::string>{"0a", "0b"});
    }
    CHECK(total == 10);
  }
}
