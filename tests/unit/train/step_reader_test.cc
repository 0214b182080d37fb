// Reading is ahead by bytes: how far, in which order, and what a store costs that stands still.
// SPDX-License-Identifier: Apache-2.0
#include "train/data/step_reader.h"

#include <omp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

/// Made-up samples of one size, each of so many that have been read counted.
class Counted final : public Dataset {
 public:
  explicit Counted(std::int64_t broken = -1) : broken_(broken) {
    MadeUpLatents made;
    made.sizes = {{2, 4, 4}};
    made.channels = 4;
    made.text_tokens = 2;
    made.text_width = 8;
    data_ = make_up_latents(made);
  }
  const data::SampleIndex& index() const override { return data_->index(); }
  const Json& info() const override { return data_->info(); }
  int read_so_far() const { return read_; }

 private:
  void fit_model(Recipe& recipe) const override { data_->fit(recipe); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    CleanSample sample = data_->read(i, seen);
    if (read_++ == broken_) throw std::runtime_error("the store is gone");
    return sample;
  }

  std::unique_ptr<Dataset> data_;
  std::int64_t broken_;
  mutable std::atomic<int> read_ = 0;
};

/// Two samples a pack, four a step.
Recipe recipe_of(const Dataset& data, const std::string& more) {
  Recipe recipe = tiny_recipe(more);
  recipe.data.packs = 2;
  data.fit(recipe);
  return recipe;
}

double sample_bytes(const Recipe& recipe, const Dataset& data) {
  return kind_of(recipe.model.type).sample_bytes(recipe, data.sizes(0));
}

/// Whether so many are read, and no more a little later.
bool stops_at(const Counted& data, int count) {
  for (int i = 0; i < 2000 && data.read_so_far() < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return data.read_so_far() == count;
}

/// What part of the time a user waits who takes a sample of one byte a tenth of a second, from a
/// reader of four times the speed that stands still two seconds of each twenty. By a clock of
/// milliseconds that is made up.
double waiting(double seconds_ahead) {
  constexpr int kRun = 400'000, kUse = 100, kRead = 25;
  AheadWindow window(static_cast<std::int64_t>(seconds_ahead * 1000 / kUse));
  int read_until = 0, used_until = 0, waited = 0, ready = 0;
  bool reading = false;
  for (int now = 0; now < kRun; ++now) {
    if (reading && now >= read_until) {
      window.add(1);
      ++ready;
      reading = false;
    }
    if (!reading && now % 20'000 >= 2000 && window.may_read(1)) {
      reading = true;
      read_until = now + kRead;
    }
    if (now < used_until) continue;
    if (ready > 0) {
      window.take(1);
      --ready;
      used_until = now + kUse;
    } else if (now > 20'000) {
      ++waited;
    }
  }
  return static_cast<double>(waited) / (kRun - 20'000);
}

}  // namespace

TEST_CASE("a store that stands still costs no time while what was read lasts") {
  CHECK(waiting(3) <= 0.02);
  CHECK(waiting(2.5) <= 0.02);
  CHECK(waiting(1) >= 0.04);
  CHECK(waiting(1) < 0.06);
  CHECK(waiting(0) > 0.08);
}

TEST_CASE("so many bytes are read ahead, and with each that is taken one more") {
  const Counted data;
  Recipe recipe = recipe_of(data, "train: {steps: 1000}");
  const double bytes = sample_bytes(recipe, data);
  const auto world = dist::self_world();
  const Parallel parallel(recipe, *world);
  recipe.data.ahead = static_cast<std::int64_t>(10.5 * bytes);
  {
    StepReader reader(recipe, data, parallel);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(data.read_so_far() == 0);  // nobody has asked yet
    StepPlan plan = reader.next();
    CHECK(plan.step == 0);
    CHECK(plan.samples == 4);
    CHECK(stops_at(data, 10));
    for (int i = 0; i < 3; ++i)
      reader.take();
    CHECK(stops_at(data, 13));
    reader.take();
    CHECK(reader.next().step == 1);
    CHECK(stops_at(data, 14));
  }
  // Less than a sample: one at a time.
  const Counted one_by_one;
  recipe.data.ahead = 0;
  StepReader reader(recipe, one_by_one, parallel);
  reader.next();
  CHECK(stops_at(one_by_one, 1));
  for (int i = 0; i < 4; ++i)
    CHECK(reader.take().failure.empty());
  CHECK(reader.next().step == 1);
  CHECK(stops_at(one_by_one, 5));
}

TEST_CASE("nothing is read beyond the run's last step, nor of more steps than a bound") {
  const auto world = dist::self_world();
  const Counted data, many;
  Recipe recipe = recipe_of(data, "train: {steps: 3}");
  const Parallel parallel(recipe, *world);
  StepReader reader(recipe, data, parallel);
  reader.next();
  CHECK(stops_at(data, 12));
  for (int i = 0; i < 12; ++i) {
    if (i > 0 && i % 4 == 0) reader.next();
    reader.take();
  }
  CHECK(reader.next().step == 3);  // who wants more gets it
  CHECK(stops_at(data, 16));

  recipe.train.steps = 100'000;
  StepReader other(recipe, many, parallel);
  other.next();
  CHECK(stops_at(many, static_cast<int>(4 * (kMostStepsAhead + 1))));
  CHECK(bytes_ahead(recipe, 100, false) == 100.0 * kMostStepsAhead);
  recipe.data.ahead = 1000;
  CHECK(bytes_ahead(recipe, 100, false) == 1000);
  CHECK(bytes_ahead(recipe, 5000, true) == 5000);  // who shares needs a step's
  recipe.train.steps = 3;
  CHECK(bytes_ahead(recipe, 100, false) == 200);  // no more than come after the first
}

TEST_CASE("what is read ahead is in no position: from any step on come the same samples") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.samples = 12, .broken = 4});
  const auto data = open_latents(folder.path, "train");
  Recipe recipe = tiny_recipe("train: {steps: 20}");
  data->fit(recipe);
  const auto world = dist::self_world();
  const Parallel parallel(recipe, *world);
  struct Step {
    StepPlan plan;
    std::vector<std::string> keys;
    int failures = 0;
  };
  const auto take_step = [](StepReader& reader) {
    Step step{reader.next(), {}, 0};
    for (const StepPlan::Pack& pack : step.plan.packs)
      for (std::size_t i = 0; i < pack.samples.size(); ++i) {
        const ReadSample read = reader.take();
        step.keys.push_back(read.sample.key);
        step.failures += !read.failure.empty();
      }
    return step;
  };
  StepReader reader(recipe, *data, parallel);
  std::vector<Step> steps;
  int failures = 0;
  for (int i = 0; i < 20; ++i) {
    steps.push_back(take_step(reader));
    failures += steps.back().failures;
  }
  CHECK(failures > 2);
  for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{18}}) {
    reader.seek(static_cast<std::uint32_t>(at + 1), steps[at].plan.after, 1000);
    const Step again = take_step(reader);
    CHECK(again.plan.step == at + 1);
    CHECK(again.keys == steps[at + 1].keys);
    CHECK(again.failures == steps[at + 1].failures);
  }
  CHECK_THROWS_AS(reader.seek(0, {0, 99}, 1000), Error);
}

TEST_CASE("what ends the reader's thread is thrown to who takes, after what was read before") {
  const auto world = dist::self_world();
  const Counted data(5);
  const Recipe recipe = recipe_of(data, "");
  const Parallel parallel(recipe, *world);
  StepReader reader(recipe, data, parallel);
  reader.next();
  for (int i = 0; i < 4; ++i)
    CHECK(reader.take().failure.empty());
  reader.next();
  CHECK(reader.take().failure.empty());
  CHECK_THROWS_WITH(reader.take(), "the store is gone");
}

TEST_CASE("how far reading is ahead changes no bit, alone and shared") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.samples = 12, .broken = 4});
  const auto data = open_latents(folder.path, "train");
  for (const auto& [ranks, layout] : {std::pair{1, "{tp: 1}"}, {2, "{tp: 2}"}}) {
    std::vector<double> losses;
    for (const std::string ahead : {"0", "3000", "67108864"}) {
      Recipe recipe = tiny_recipe("data: {ahead: " + ahead + "}\nparallel: " + layout);
      data->fit(recipe);
      double loss = 0;
      dist::thread_worlds(ranks, [&](dist::World& world) {
        omp_set_num_threads(1);
        Trainer trainer(recipe, *data, world);
        double sum = 0;
        for (int i = 0; i < 6; ++i)
          sum += trainer.train_step().loss.mean();
        if (world.rank() == 0) loss = sum;
      });
      losses.push_back(loss);
    }
    CHECK(losses[0] == losses[1]);
    CHECK(losses[0] == losses[2]);
  }
}
