// The one judge of layouts against the run itself: 1,000 layouts, drawn at random.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "parallel_cases.h"
#include "train/recipe/parallel_fields.h"
#include "train/recipe/recipe_field.h"
#include "train/recipe/recipe_keys.h"
#include "train/step/parallel.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

/// "" if `act` refuses nothing; another error than a refusal passes.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return error.what();
  }
  return {};
}

/// What a run of threads says to it: it makes its mesh and its model, and one step.
std::string said_by_run(const Recipe& recipe, const Dataset& data, int ranks) {
  return refusal([&] {
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      Trainer trainer(recipe, data, world);
      const StepResult result = trainer.train_step(false);
      if (!(result.loss.elements() > 0)) throw std::logic_error("a step of nothing");
    });
  });
}

/// That what a refusal says can be, is so, and is another layout. Whether it says anything.
bool check_advice(Recipe recipe, int ranks, const Dataset& data, const std::string& told) {
  const std::string ending = " can be";
  const std::size_t begin = told.rfind("; on ");
  if (begin == std::string::npos || !told.ends_with(ending)) return false;
  INFO(told);
  std::istringstream words(told.substr(begin, told.size() - ending.size() - begin));
  int settings = 0;
  for (std::string word; words >> word;)
    if (word.starts_with("parallel.")) {
      const Setting setting = parse_override(word);
      const std::vector<Field> fields = fields_of(recipe);
      find_field(fields, setting.key)->set(setting);
      ++settings;
    }
  CHECK(settings > 0);
  CHECK_NOTHROW(judge_layout(recipe, ranks, ranks));
  CHECK_NOTHROW(data.fit(recipe));
  return true;
}

/// Draws so many, and compares what check_layout says of each with what a run of it says.
void judge_layouts(int count) {
  std::mt19937 random(22);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const std::array types = {"dit", "moviegen", "stdit", "autoregressive"};
  using enum nn::CpKind;
  const std::array kinds = {automatic, gather, all_to_all, ring, all_to_all_ring};
  std::map<std::string, std::unique_ptr<Dataset>> data;
  int accepted = 0, stages_with_shards = 0, advised = 0;
  for (int i = 0; i < count; ++i) {
    ParallelCase one;
    one.type = types.at(static_cast<std::size_t>(draw(0, 3)));
    one.samples = Samples::one_a_pack;
    one.ranks = draw(1, 6);
    Recipe recipe = recipe_of(one);
    if (!data.contains(one.type)) data[one.type] = samples_of(one);
    const Dataset& set = *data.at(one.type);
    recipe.data.packs = draw(1, 6);  // groups without a pack take part with an empty one
    // Most layouts of so few ranks are made of divisors.
    recipe.parallel.tp = draw(0, 3) > 0 ? std::array{1, 2, 2, 3}.at(draw(0, 3)) : draw(1, 6);
    recipe.parallel.cp = draw(0, 3) > 0 ? std::array{1, 2, 2, 4}.at(draw(0, 3)) : draw(1, 6);
    recipe.parallel.tp_chunks = draw(0, 3) == 0 ? draw(1, 9) : 0;
    recipe.parallel.cp_kind = kinds.at(static_cast<std::size_t>(draw(0, 4)));
    recipe.parallel.cp_heads = draw(0, 2) == 0 ? draw(1, 4) : 0;
    recipe.parallel.hybrid = draw(0, 1) == 1 && (one.type == "stdit" || draw(0, 9) == 0);
    recipe.parallel.pp = draw(0, 2) == 0 ? std::array{2, 2, 2, 3}.at(draw(0, 3)) : 1;
    recipe.parallel.vpp = draw(0, 3) == 0 ? 2 : 1;
    recipe.parallel.shard =
        std::array{ShardKind::none, ShardKind::none, ShardKind::optimizer, ShardKind::full}.at(
            static_cast<std::size_t>(draw(0, 3)));
    if (recipe.parallel.shards_state())
      recipe.parallel.replicate = std::array{1, 1, 2, 3}.at(static_cast<std::size_t>(draw(0, 3)));
    // As many ranks as fit stages are seldom drawn, and with three axes they are many.
    if (recipe.parallel.pp > 1 && draw(0, 3) > 0)
      (draw(0, 1) > 0 ? recipe.parallel.tp : recipe.parallel.cp) = 1;
    const int sharers = recipe.parallel.sharers();
    if (recipe.parallel.pp > 1 && sharers <= 8 && draw(0, 3) > 0)
      one.ranks = sharers * draw(1, std::max(1, 8 / sharers));
    // Too few blocks for the stages now and then.
    if (recipe.parallel.pp > 1 && draw(0, 3) > 0)
      recipe.model.dit.num_layers = recipe.model.decoder.num_layers =
          recipe.parallel.pp * recipe.parallel.vpp;
    // Of samples with too few tokens the fit says it, in the run as here: draw another.
    if (!refusal([&] { set.fit(recipe); }).empty()) {
      --i;
      continue;
    }
    const std::string judged = refusal([&] { judge_layout(recipe, one.ranks, one.ranks); });
    const std::string told = refusal([&] { check_layout(recipe, one.ranks, one.ranks, &set); });
    const std::string run = said_by_run(recipe, set, one.ranks);
    INFO(one.type << ", " << one.ranks << " ranks, tp=" << recipe.parallel.tp << " cp="
                  << recipe.parallel.cp << " " << nn::cp_kind_name(recipe.parallel.cp_kind)
                  << " of " << recipe.parallel.cp_heads << (recipe.parallel.hybrid ? " hybrid" : "")
                  << " pp=" << recipe.parallel.pp << " vpp=" << recipe.parallel.vpp << ", shard="
                  << shard_name(recipe.parallel.shard) << " of " << recipe.parallel.replicate);
    REQUIRE(judged == run);
    REQUIRE(judged.empty() == told.empty());
    if (!judged.empty()) {
      advised += check_advice(recipe, one.ranks, set, told);
      continue;
    }
    ++accepted;
    if (recipe.parallel.pp > 1 && recipe.parallel.shards_state()) ++stages_with_shards;
  }
  // Neither all nor none, or the test says nothing.
  CHECK(accepted > count / 10);
  CHECK(accepted < 85 * count / 100);
  CHECK(stages_with_shards > count / 50);
  CHECK(advised > count / 5);
}

}  // namespace

TEST_CASE("two hundred layouts: the judge says of each what the run says", "[long]") {
  judge_layouts(200);
}

TEST_CASE("a thousand layouts: the judge says of each what the run says", "[long][nightly]") {
  judge_layouts(1000);
}

TEST_CASE("the layout that a refusal names can be, and there is no way round in a circle") {
  ParallelCase one;  // of four heads
  Recipe recipe = recipe_of(one);
  const auto data = samples_of(one);
  data->fit(recipe);
  const auto told = [&](int ranks) {
    return refusal([&] { check_layout(recipe, ranks, ranks, data.get()); });
  };
  recipe.parallel.tp = 2;
  CHECK(told(3) ==
        "tp=2 cp=1 pp=1 needs a multiple of 2 ranks, not 3; on 3 ranks parallel.tp=1 can be");
  recipe.parallel.tp = 3;
  CHECK(told(3) == "4 attention heads are not shared by 3 ranks; on 3 ranks parallel.tp=1 can be");
  CHECK(told(1) ==
        "tp=3 cp=1 pp=1 needs a multiple of 3 ranks, not 1; on 1 rank parallel.tp=1 can be");
  // More stages than blocks.
  recipe.parallel.tp = 1, recipe.parallel.pp = 2;
  CHECK(told(2).ends_with("; on 2 ranks parallel.pp=1 can be"));
}

TEST_CASE("a layout with more groups than packs is taken, and warned of with the value that fits") {
  ParallelCase one;
  Recipe recipe = recipe_of(one);
  samples_of(one)->fit(recipe);
  static std::vector<std::string> said;
  set_log_sink([](LogLevel, std::string_view text) { said.emplace_back(text); }, LogLevel::warning);
  const auto warned = [&](int ranks) {
    said.clear();
    check_layout(recipe, ranks, ranks);
    warn_of_idle_ranks(recipe, ranks);
    return said;
  };
  CHECK(warned(2).empty());
  CHECK(warned(3) ==
        std::vector<std::string>{"1 of 3 ranks have no pack in a step, and wait for the others: "
                                 "'data.packs' is 2, should be 3, or a multiple of it"});
  recipe.parallel.tp = 2;
  CHECK(warned(4).empty());
  REQUIRE(warned(8).size() == 1);
  CHECK(said[0].starts_with("4 of 8 ranks have no pack"));
  CHECK(said[0].ends_with("should be 4, or a multiple of it"));
  set_log_sink(nullptr, LogLevel::warning);
}
