// Samples of a store that is far away: fetched several at once, those of a shard together, in the
// order of training and in bounded memory.
// SPDX-License-Identifier: Apache-2.0
#include "train/data/fetch_ahead.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "train/cost/memory.h"
#include "train/data/step_reader.h"
#include "train/diffusion/data.h"

using namespace vfm;
using namespace vfm::train;

namespace {

constexpr std::int64_t kFarBytes = 100;  // of each sample

/// Made-up samples of three shards, of which each request takes a while.
class FarAway final : public Dataset {
 public:
  explicit FarAway(std::chrono::milliseconds latency = std::chrono::milliseconds(0))
      : latency_(latency) {
    MadeUpLatents made;
    made.sizes = {{2, 4, 4}, {1, 4, 4}, {1, 2, 4}};
    made.channels = 4;
    made.text_tokens = 2;
    made.text_width = 8;
    data_ = make_up_latents(made);
  }
  const data::SampleIndex& index() const override { return data_->index(); }
  const Json& info() const override { return data_->info(); }
  std::int64_t about_bytes(std::size_t /*i*/) const override { return kFarBytes; }
  bool is_remote() const override { return remote; }
  std::uint32_t shard_of(std::size_t i) const override { return static_cast<std::uint32_t>(i % 3); }
  void fetch(std::span<data::SampleBytes> parts) const override {
    const auto bytes = static_cast<std::int64_t>(parts.size()) * kFarBytes;
    {
      const std::lock_guard lock(mutex_);
      ++requests;
      most_at_once = std::max(most_at_once, ++at_once_);
      most_bytes = std::max(most_bytes, held_ += bytes);
      for (const data::SampleBytes& part : parts)
        alone = alone && shard_of(part.sample) == shard_of(parts[0].sample);
    }
    std::this_thread::sleep_for(latency_);
    for (data::SampleBytes& part : parts) {
      if (shard_of(part.sample) == damaged) part.failure = "its bytes are wrong";
      if (shard_of(part.sample) == gone) throw Error("the store does not answer", Cause::server);
      part.bytes = std::to_string(part.sample) + std::string(1, ' ');
    }
    const std::lock_guard lock(mutex_);
    --at_once_;
  }
  CleanSample read_fetched(std::size_t i, const std::string& bytes,
                           std::optional<SeenAt> seen) const override {
    {
      const std::lock_guard lock(mutex_);
      held_ -= kFarBytes;
    }
    if (bytes != std::to_string(i) + " ") fail("the bytes of another sample");
    return data_->read(i, seen);
  }

  bool remote = true;
  std::uint32_t damaged = 99, gone = 99;  ///< shards
  mutable int requests = 0, most_at_once = 0;
  mutable std::int64_t most_bytes = 0;
  mutable bool alone = true;  ///< each request was of one shard

 private:
  void fit_model(Recipe& recipe) const override { data_->fit(recipe); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    return data_->read(i, seen);
  }

  std::chrono::milliseconds latency_;
  std::unique_ptr<Dataset> data_;
  mutable std::mutex mutex_;
  mutable int at_once_ = 0;
  mutable std::int64_t held_ = 0;
};

/// What some steps take: "STEP KEY FIRST-VALUE", or the reason why not.
std::vector<std::string> taken_of(const Dataset& data, const Recipe& recipe, int steps) {
  const auto world = dist::self_world();
  const Parallel parallel(recipe, *world);
  StepReader reader(recipe, data, parallel);
  std::vector<std::string> all;
  for (int step = 0; step < steps; ++step) {
    const StepPlan plan = reader.next();
    for (const StepPlan::Pack& pack : plan.packs)
      for (std::size_t i = 0; i < pack.samples.size(); ++i) {
        const ReadSample read = reader.take();
        all.push_back(fmt::format(
            "{} {} {}", plan.step, read.sample.key,
            read.failure.empty() ? std::to_string(read.sample.x0.at(0)) : read.failure));
      }
  }
  return all;
}

Recipe far_recipe(const Dataset& data) {
  Recipe recipe = tiny_recipe("train: {steps: 1000}");
  recipe.data.packs = 4;
  data.fit(recipe);
  return recipe;
}

}  // namespace

TEST_CASE("training takes of a store that is far away what it takes of a disk") {
  FarAway near, far(std::chrono::milliseconds(4));
  near.remote = false;
  const Recipe recipe = far_recipe(near);
  const std::vector<std::string> expected = taken_of(near, recipe, 30);
  CHECK(taken_of(far, recipe, 30) == expected);
  CHECK(far.most_at_once > 2);
  CHECK(far.alone);
  CHECK(far.requests < static_cast<int>(expected.size()));  // some came together
}

TEST_CASE("a sample that is damaged is left out, a store that fails ends the training") {
  FarAway far;
  const Recipe recipe = far_recipe(far);
  const std::vector<std::string> whole = taken_of(far, recipe, 3);
  far.damaged = 1;
  const std::vector<std::string> some = taken_of(far, recipe, 3);
  REQUIRE(some.size() == whole.size());
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < some.size(); ++i) {
    const bool wrong = some[i].ends_with("its bytes are wrong");
    CHECK((wrong || some[i] == whole[i]));
    left_out += wrong ? 1 : 0;
  }
  CHECK(left_out > 0);
  CHECK(left_out < some.size());
  far.gone = 2;
  CHECK_THROWS_WITH(taken_of(far, recipe, 3), "the store does not answer");
}

TEST_CASE("what is fetched ahead is counted in a rank's memory on the CPU") {
  FarAway near, far;
  near.remote = false;
  const Recipe recipe = far_recipe(far);
  const auto world = dist::self_world();
  CHECK(fetch_bytes(recipe, near) == 0);
  CHECK(fetch_bytes(recipe, far) >= static_cast<double>(recipe.data.ahead + kFarBytes));
  CHECK(memory_beside(recipe, near, Device::cpu, *world) -
            memory_beside(recipe, far, Device::cpu, *world) ==
        Approx(fetch_bytes(recipe, far)));
  CHECK(reading_bytes(recipe, far, Device::cuda) == 0);
}

TEST_CASE("parts are fetched in bounded bytes, and come in the order of the wants") {
  const FarAway far(std::chrono::milliseconds(1));
  FetchAhead ahead(far, 5 * kFarBytes);
  for (std::size_t i = 0; i < 40; ++i)
    ahead.want(i % 7 % far.size(), 0, kFarBytes);
  CHECK_FALSE(ahead.has_room());
  for (std::size_t i = 0; i < 40; ++i) {
    const data::SampleBytes part = ahead.take();
    CHECK(part.sample == i % 7 % far.size());
    far.read_fetched(part.sample, part.bytes, {});
  }
  CHECK(ahead.has_room());
  CHECK(far.most_bytes <= 6 * kFarBytes);  // with the one that was just taken
  // What is held of a shard does not keep the next part from coming.
  FetchAhead unequal(far, 100);
  unequal.want(0, 0, 10);
  unequal.want(1, 0, 60);
  unequal.want(0, 0, 90);
  CHECK(unequal.take().bytes == "0 ");
  CHECK(unequal.take().bytes == "1 ");
  CHECK(unequal.take().bytes == "0 ");
  // A part that is larger than the bound comes alone.
  FetchAhead one(far, 1);
  one.want(0, 0, kFarBytes);
  one.want(0, 0, kFarBytes);
  CHECK(one.take().bytes == "0 ");
  CHECK(one.take().bytes == "0 ");
}
