// Steps of training as graphs, on the emulated GPU: their bits are those of plain steps, and CUDA
// allows what other threads do meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/json.h"
#include "streams.h"
#include "tensor/device_cuda.h"
#include "tensor/graph_cache.h"
#include "train/diffusion/objective.h"
#include "train/step/validation.h"
#include "train_test.h"

using namespace vfm;
using namespace vfm::train;

namespace {

// Data of which a step's cannot be read before they are allowed to: so the thread that prepares the
// next step does it when the test wants.
class Gated : public Dataset {
 public:
  explicit Gated(const Dataset& data) : data_(data) {}
  const data::SampleIndex& index() const override { return data_.index(); }
  const Json& info() const override { return data_.info(); }

  void allow(std::uint32_t step) {
    std::lock_guard lock(mutex_);
    allowed_ = std::max(allowed_, step);
    changed_.notify_all();
  }
  /// The same while nobody else has to do with the GPU; whether some were uploaded then.
  bool allow_and_wait(std::uint32_t step) {
    const std::size_t used = cuda_memory().current;
    allow(step);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (cuda_memory().current <= used && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return cuda_memory().current > used;
  }

 private:
  void fit_model(Recipe& recipe) const override { data_.fit(recipe); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !seen || seen->step <= allowed_; });
    lock.unlock();
    return data_.read(i, seen);
  }

  const Dataset& data_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint32_t allowed_ = 0;
};

Recipe repeating() {
  Recipe recipe = small();
  recipe.data.micro_packs = 1;
  recipe.diffusion.text_dropout = 0;  // which would make more shapes
  return recipe;
}

}  // namespace

TEST_CASE("steps as graphs have the bits of plain ones, whichever stream is late") {
  const auto [compute, recompute, late] = GENERATE(table<std::string, std::string, emulation::Late>(
      {{"f32", "elementwise", emulation::Late::kernels},
       {"bf16", "block", emulation::Late::copies}}));
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = repeating();
  recipe.model.compute = compute;
  recipe.model.recompute = recompute;
  recipe.optimizer.max_skips = 5;
  data.fit(recipe);
  const auto world = dist::self_world();
  GraphCache::allow(false);
  Side plain(recipe, data, *world, Device::cuda);
  GraphCache::allow(true);
  Side side(recipe, data, *world, Device::cuda);
  const auto& graphs = dynamic_cast<const DiffusionObjective&>(side.trainer.objective()).graphs();
  Validation validation(recipe, data, "train");
  const std::size_t others = emulation::recorded_by_others();
  emulation::set_late(late);
  for (int i = 0; i < 7; ++i) {
    const nn::Parameter& weight = *side.trainer.objective().parameters()[0];
    const Tensor good = weight.read().to(Device::cpu).clone();
    const bool bad = i == 4;  // a weight that makes all infinite, for a while
    if (bad) {
      const Tensor broken = good.clone();
      broken.floats()[0] = HUGE_VALF;
      for (Side* one : {&plain, &side})
        one->trainer.objective().parameters()[0]->write(broken);
    }
    const StepResult a = plain.trainer.train_step(), b = side.trainer.train_step();
    CHECK(a.skipped == bad);
    CHECK(b.skipped == bad);
    if (bad) {
      for (Side* one : {&plain, &side})
        one->trainer.objective().parameters()[0]->write(good);
    } else {
      CHECK(a.loss.image_sum == b.loss.image_sum);
      CHECK(a.loss.video_sum == b.loss.video_sum);
      CHECK(a.gradient_norm == b.gradient_norm);
    }
    if (i == 2)
      CHECK(validation.run(plain.trainer.objective(), plain.trainer.parallel()) ==
            validation.run(side.trainer.objective(), side.trainer.parallel()));
    REQUIRE(same(plain.weights(), side.weights()));
  }
  CHECK(same(plain.trainer.optimizer().state("adam_m").tensors,
             side.trainer.optimizer().state("adam_m").tensors));
  CHECK(same(plain.trainer.optimizer().state("adam_v").tensors,
             side.trainer.optimizer().state("adam_v").tensors));
  CHECK(same(plain.trainer.optimizer().ema(), side.trainer.optimizer().ema()));
  CHECK(side.trainer.state().updates == 6);
  CHECK(graphs.graphs() > 0);
  CHECK(graphs.replays() > 4);
  CHECK(emulation::recorded_by_others() == others);
  emulation::set_late(emulation::Late::none);
}

TEST_CASE("while a step is recorded the next one's data are uploaded, which CUDA allows") {
  const std::string average = GENERATE("gpu", "host");  // from where a thread copies it
  const auto set = made_up();
  Gated data(*set);
  Recipe recipe = repeating();
  recipe.ema.place = average;
  data.fit(recipe);
  const auto world = dist::self_world();
  GraphCache::allow(false);
  Side plain(recipe, *set, *world, Device::cuda);
  GraphCache::allow(true);
  Side side(recipe, data, *world, Device::cuda);
  const auto& graphs = dynamic_cast<const DiffusionObjective&>(side.trainer.objective()).graphs();
  const std::size_t others = emulation::recorded_by_others();
  std::uint32_t step = 0;
  int recordings = 0, beside = 0;
  emulation::when_capture_begins([&] {
    ++recordings;
    if (data.allow_and_wait(step + 1)) ++beside;
  });
  // However this ends, the thread that prepares goes on.
  const std::shared_ptr<void> at_end(nullptr, [&](void*) {
    data.allow(std::numeric_limits<std::uint32_t>::max());
    emulation::when_capture_begins({});
  });
  for (; step < 5; ++step) {
    side.trainer.train_step();
    data.allow(step + 1);
    plain.trainer.train_step();
    REQUIRE(same(plain.weights(), side.weights()));
  }
  CHECK(same(plain.trainer.optimizer().ema(), side.trainer.optimizer().ema()));
  CHECK(graphs.graphs() == recordings);
  CHECK(beside > 0);
  CHECK(emulation::recorded_by_others() == others);
}

TEST_CASE("what waits in the host's memory changes no bit of a step, whichever stream is late") {
  const auto [type, recompute, late] = GENERATE(table<std::string, std::string, emulation::Late>(
      {{"dit", "block", emulation::Late::copies},
       {"dit", "block", emulation::Late::kernels},
       {"moviegen", "block_but_attention", emulation::Late::copies},
       {"stdit", "block_but_attention", emulation::Late::kernels}}));
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = make_recipe(
      parse_yaml("model: {type: " + type +
                     ", num_attention_heads: 2, attention_head_dim: 12, num_layers: 4, " +
                     (type == "moviegen" ? "" : "adaln_lora_dim: 4, ") +
                     "max_size: [4, 8, 8], recompute: " + recompute +
                     ", compute: bf16}\ndata: {tokens: 12, packs: 2, window: 8, micro_packs: 1}\n"
                     "schedule: {warmup: 2}\nema: {decay: 0.5}\n",
                 "a test"));
  data.fit(recipe);
  const auto world = dist::self_world();
  GraphCache::allow(false);
  Side plain(recipe, data, *world, Device::cuda);
  GraphCache::allow(true);
  recipe.model.offload = true;
  Side side(recipe, data, *world, Device::cuda);
  CHECK(dynamic_cast<const DiffusionObjective&>(side.trainer.objective()).graphs().graphs() == 0);
  emulation::set_late(late);
  for (int i = 0; i < 3; ++i) {
    const StepResult a = plain.trainer.train_step(), b = side.trainer.train_step();
    CHECK(a.loss.video_sum == b.loss.video_sum);
    CHECK(a.gradient_norm == b.gradient_norm);
    REQUIRE(same(plain.weights(), side.weights()));
  }
  CHECK(pinned_allocator().stats().peak > 0);
  CHECK(pinned_allocator().stats().current == 0);
  CHECK(dynamic_cast<const DiffusionObjective&>(side.trainer.objective()).graphs().graphs() == 0);
  emulation::set_late(emulation::Late::none);
}
