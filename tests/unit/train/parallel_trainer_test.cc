// A training that ranks share in any layout is that of one rank: losses, norms, weights, what is
// read, and what is left out.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "support/distance.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/recipe/parallel_fields.h"
#include "train/run.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;

namespace {

struct Trained {
  std::vector<double> losses, norms, read_bytes;
  Json validation;
  std::map<std::string, Tensor> weights;  // whole
  std::map<std::string, std::string> failures;
};

struct Layout {
  int ranks, tp, cp;
  const char* kind;
  int pp = 1, vpp = 1;
  bool hybrid = false;
  ShardKind shard = ShardKind::none;

  Recipe of(Recipe recipe) const {
    recipe.parallel.tp = tp;
    recipe.parallel.cp = cp;
    recipe.parallel.cp_kind = nn::parse_cp_kind(kind);
    recipe.parallel.pp = pp;
    recipe.parallel.vpp = vpp;
    recipe.parallel.hybrid = hybrid;
    recipe.parallel.shard = shard;
    return recipe;
  }
  std::string words() const {
    return fmt::format("{} ranks, tp={} cp={} {} pp={} vpp={} shard={}", ranks, tp, cp, kind, pp,
                       vpp, shard_name(shard));
  }
};

// Puts a part where it lies in the whole, or compares it with what another rank put there.
void place(const nn::Parameter& p, std::map<std::string, Tensor>& wholes) {
  Tensor& whole = wholes[p.name];
  const Shape shape = p.shape().size() == 2 ? p.shape() : Shape{1, p.elements()};
  const Shape offset = p.shape().size() == 2 ? p.placement.offset : Shape{0, 0};
  const std::int64_t columns =
      p.shape().size() == 2 ? p.placement.global[1] : element_count(p.placement.global);
  if (!whole.defined()) {
    whole = Tensor(p.placement.global);
    for (float& value : whole.floats())
      value = NAN;
  }
  const Tensor part = p.read();
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    float* const there = whole.data<float>() + (row + offset[0]) * columns + offset[1];
    const float* const here = part.data<float>() + row * shape[1];
    const auto bytes = static_cast<std::size_t>(shape[1]) * sizeof(float);
    if (std::isnan(*there)) std::memcpy(there, here, bytes);
    CHECK(std::memcmp(there, here, bytes) == 0);
  }
}

Trained train_on(int ranks, const Recipe& recipe, const Dataset& data, int steps) {
  Trained outcome;
  std::mutex mutex;
  dist::thread_worlds(ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    Trainer trainer(recipe, data, world);
    std::vector<double> losses, norms, read;
    for (int i = 0; i < steps; ++i) {
      const StepResult result = trainer.train_step();
      losses.push_back(result.loss.mean());
      norms.push_back(result.gradient_norm);
      read.push_back(result.read_bytes);
    }
    const Json record =
        Validation(recipe, data, "train").run(trainer.objective(), trainer.parallel());
    const std::lock_guard lock(mutex);
    if (outcome.losses.empty()) outcome = {losses, norms, read, record, {}, trainer.failures()};
    CHECK(losses == outcome.losses);
    CHECK(norms == outcome.norms);
    CHECK(record == outcome.validation);
    outcome.failures.insert(trainer.failures().begin(), trainer.failures().end());
    for (const nn::Parameter* parameter : trainer.objective().parameters())
      if (!parameter->sharded) place(*parameter, outcome.weights);
  });
  return outcome;
}

void check_trained(const Trained& a, const Trained& b) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    CHECK(a.losses[i] == Approx(b.losses[i]).epsilon(1e-5));
    CHECK(a.norms[i] == Approx(b.norms[i]).epsilon(1e-4));
  }
  CHECK(a.read_bytes == b.read_bytes);
  CHECK(a.read_bytes[0] > 0);
  CHECK(a.validation["val_samples"] == b.validation["val_samples"]);
  CHECK(a.validation["val_loss"].get<double>() ==
        Approx(b.validation["val_loss"].get<double>()).epsilon(1e-5));
  CHECK(a.failures == b.failures);
  REQUIRE(a.weights.size() == b.weights.size());
  for (const auto& [name, weights] : a.weights) {
    INFO(name);
    CHECK(largest_difference(weights.floats(), b.weights.at(name).floats()) < 1e-4);
  }
}

// Six steps on each layout are those of one rank.
void check_layouts(const Recipe& recipe, const Dataset& data, const Trained& one,
                   const std::vector<Layout>& layouts) {
  for (const Layout& layout : layouts) {
    INFO(layout.words());
    check_trained(train_on(layout.ranks, layout.of(recipe), data, 6), one);
  }
}

}  // namespace

TEST_CASE("ranks that share heads, tokens and samples train as one does") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.broken = 5});
  const auto data = open_latents(folder.path, "train");
  Recipe recipe = tiny_recipe();
  data->fit(recipe);
  const Trained one = train_on(1, recipe, *data, 6);
  CHECK(one.failures.size() == 1);
  check_layouts(recipe, *data, one,
                {{2, 2, 1, "auto"},
                 {2, 1, 2, "gather"},
                 {2, 1, 2, "all_to_all"},
                 {4, 2, 2, "gather"},
                 {4, 2, 1, "auto"},
                 {6, 1, 3, "gather"},
                 {8, 2, 2, "gather"}});
}

TEST_CASE("ranks of a hybrid train as one does, some with no frame of a sample") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.broken = 5});  // of one frame and of two
  const auto data = open_latents(folder.path, "train");
  Recipe recipe = tiny_recipe("model.type: stdit");
  data->fit(recipe);
  const Trained one = train_on(1, recipe, *data, 6);
  CHECK(one.failures.size() == 1);
  check_layouts(recipe, *data, one,
                {{2, 1, 2, "ring", 1, 1, true},
                 {3, 1, 3, "gather", 1, 1, true},
                 {2, 1, 2, "all_to_all", 1, 1, true},
                 {4, 2, 2, "gather", 1, 1, true},
                 {5, 1, 5, "ring", 1, 1, true},  // more than a sample has tokens
                 {4, 1, 2, "auto", 1, 1, true},
                 {4, 1, 2, "gather", 2, 1, true}});
}

TEST_CASE("stages of a pipeline train as one rank does, also past packs that cannot be read") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.broken = 5});
  const auto data = open_latents(folder.path, "train");
  // One sample or two a pack, so that one has none left.
  Recipe recipe = tiny_recipe("{model.num_layers: 5, data.tokens: 8, data.packs: 4}");
  data->fit(recipe);
  const Trained one = train_on(1, recipe, *data, 6);
  CHECK(one.failures.size() == 1);
  check_layouts(recipe, *data, one,
                {{2, 1, 1, "auto", 2},
                 {3, 1, 1, "auto", 3},
                 {2, 1, 1, "auto", 2, 2},
                 {4, 2, 1, "auto", 2},
                 {4, 1, 1, "auto", 2},
                 {4, 1, 2, "gather", 2},
                 {8, 2, 1, "auto", 2, 2}});
}

TEST_CASE("a sample that is too short for the ranks that share it is refused before any work") {
  const TemporaryFolder folder;
  write_latents(folder.path);  // of 4 tokens and of 8
  const auto data = open_latents(folder.path, "train");
  Recipe recipe = tiny_recipe();
  recipe.parallel.tp = recipe.parallel.cp = 2;
  data->fit(recipe);
  recipe.parallel.cp = 3;
  CHECK_THROWS_WITH(data->fit(recipe), Catch::Contains("has 4 tokens, too few for the ranks"));
}

namespace {

Recipe code_recipe(const std::string& more = "") {
  auto settings = parse_yaml(
      "model: {type: autoregressive, num_attention_heads: 8, num_key_value_heads: 4, "
      "attention_head_dim: 12, num_layers: 2, mlp_ratio: 1.1}\n"
      "autoregressive: {ignored_frames: 1}\n"
      "data: {tokens: 64, packs: 3, window: 8}\n"
      "optimizer: {lr: 0.003}\n"
      "validation: {every: 2, samples: 3}\n"
      "train: {steps: 6, checkpoint_every: 2, log_every: 1}\n",
      "codes");
  for (const auto& setting : parse_yaml(more, "more"))
    settings.push_back(setting);
  return make_recipe(settings);
}

}  // namespace

TEST_CASE("ranks that share a decoder of codes train as one does") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.broken = 5, .vocabulary = 23});
  Recipe recipe = code_recipe();
  const auto data = kind_of(recipe.model.type).open({.data = folder.path}, "train");
  data->fit(recipe);
  const Trained one = train_on(1, recipe, *data, 6);
  CHECK(one.failures.size() == 1);
  check_layouts(recipe, *data, one,
                {{2, 2, 1, "auto"},
                 {2, 1, 2, "gather"},
                 {3, 1, 3, "gather"},
                 {4, 2, 2, "all_to_all"},
                 {2, 1, 1, "auto", 2},
                 {8, 2, 2, "gather"}});
}

TEST_CASE("ranks that share a decoder's state have the bits of ranks that do not") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.vocabulary = 23});
  Recipe recipe = code_recipe("{optimizer.clip: 0, data.packs: 2}");
  const auto data = kind_of(recipe.model.type).open({.data = folder.path}, "train");
  data->fit(recipe);
  const Layout none{2, 1, 1, "auto"};
  const Trained plain = train_on(2, none.of(recipe), *data, 4);
  for (const ShardKind shard : {ShardKind::optimizer, ShardKind::full}) {
    INFO(shard_name(shard));
    Layout layout = none;
    layout.shard = shard;
    const Trained shared = train_on(2, layout.of(recipe), *data, 4);
    CHECK(shared.losses == plain.losses);
    CHECK(shared.validation == plain.validation);
    CHECK(shared.weights.size() > 4);
    for (const auto& [name, weights] : shared.weights) {
      INFO(name);
      CHECK(largest_difference(weights.floats(), plain.weights.at(name).floats()) == 0);
    }
  }
}

TEST_CASE("fifty steps on any layout stay as near as another order of sums does",
          "[long][nightly]") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.samples = 24});
  const auto data = open_latents(folder.path, "train");
  constexpr int kSteps = 50;
  const Layout hybrid{2, 1, 2, "ring", 1, 1, true};
  for (const auto& [type, layouts] : std::vector<std::pair<std::string, std::vector<Layout>>>{
           {"dit",
            {{8, 2, 2, "gather"},
             {4, 1, 2, "all_to_all"},
             {4, 1, 1, "auto", 2},
             {4, 2, 1, "auto", 1, 1, false, ShardKind::full},
             {2, 1, 2, "gather", 1, 1, false, ShardKind::optimizer}}},
           {"stdit", {hybrid}}}) {
    Recipe recipe = tiny_recipe("{data.packs: 4, schedule.warmup: 5, model.type: " + type + "}");
    data->fit(recipe);
    const std::vector<double> one = train_on(1, recipe, *data, kSteps).losses;
    const auto apart = [&](const std::vector<double>& losses) {
      double sum = 0;
      for (std::size_t i = 0; i < one.size(); ++i)
        sum += (losses[i] - one[i]) * (losses[i] - one[i]);
      return std::sqrt(sum / static_cast<double>(one.size()));
    };
    // What is noise: the same packs on one rank, one after the other, or two and two.
    double noise = 0;
    for (const int together : {1, 2}) {
      Recipe micro = recipe;
      micro.data.micro_packs = together;
      noise = std::max(noise, apart(train_on(1, micro, *data, kSteps).losses));
    }
    CHECK(noise > 0);
    CHECK(one.back() < 0.95 * one.front());
    for (const Layout& layout : layouts) {
      INFO(type << " on " << layout.words());
      CHECK(apart(train_on(layout.ranks, layout.of(recipe), *data, kSteps).losses) < 3 * noise);
    }
  }
}
