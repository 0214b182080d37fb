// The planner's parts against what is worked out by hand, and against the dry run.
// SPDX-License-Identifier: Apache-2.0
#include "train/plan/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/usage_error.h"
#include "train/kind.h"
#include "train/plan/links.h"
#include "train/recipe_file.h"
#include "train/run.h"

using namespace vfm;
using namespace vfm::train;
using dist::Operation;

namespace {

/// A model whose layers are like those of 7 billion parameters, but few and narrow.
constexpr const char* kSmall =
    "model: {num_attention_heads: 8, num_layers: 6, compute: bf16, adaln_lora_dim: 64}\n"
    "data: {tokens: 2048, packs: 8, micro_packs: 1}\nema.mode: 'off'\n";

RunOptions small(const std::string& more = "{}") {
  RunOptions options;
  auto settings = parse_yaml(kSmall, "recipe");
  for (const auto& setting : parse_yaml(more, "more"))
    settings.push_back(setting);
  options.recipe = make_recipe(settings);
  options.synthetic = {{8, 32, 32}};
  options.device = Device::cuda;
  return options;
}

struct Fitted {
  Recipe recipe;
  Workload load;
  explicit Fitted(const RunOptions& options) : recipe(options.recipe) {
    const auto set = kind_of(recipe.model.type).open(options, "train");
    set->fit(recipe);
    load = measure(recipe, *set);
  }
};

const models::Gpu& h100() {
  return models::find_gpu("h100");
}

}  // namespace

TEST_CASE("groups and nodes: rank 0 and its neighbours, eight a node") {
  const Candidate one{.tp = 4, .cp = 4, .dp = 4};
  const auto on = [&](std::string_view axes) {
    const GroupOnNodes group = group_on_nodes(axes, one, 8);
    return std::pair(group.ranks, group.on_node);
  };
  CHECK(on("tp") == std::pair(4, 4));
  CHECK(on("cp") == std::pair(4, 2));      // 0, 4 | 8, 12
  CHECK(on("dp") == std::pair(4, 1));      // 0 | 16 | 32 | 48
  CHECK(on("cp+dp") == std::pair(16, 2));  // of each node two
  CHECK(on("tp+cp+dp") == std::pair(64, 8));
  CHECK_THROWS(on("rows"));
}

TEST_CASE("messages by hand: latency and bytes over the slowest link") {
  models::Gpu gpu = h100();
  gpu.inside = {.bandwidth = 100e9, .latency = 1e-6};
  gpu.across = {.bandwidth = 10e9, .latency = 10e-6};
  const SentMessages sent{2, 1e9};
  CHECK(message_seconds(gpu, Operation::all_gather, {1, 1}, sent) == 0);
  CHECK(message_seconds(gpu, Operation::all_gather, {4, 4}, sent) == Approx(0.010 + 2 * 2e-6));
  // A ring leaves a node by the links of both its GPUs there.
  CHECK(message_seconds(gpu, Operation::all_reduce, {4, 2}, sent) == Approx(0.050 + 2 * 20e-6));
  // Of an all-to-all with 3 others two are elsewhere.
  CHECK(message_seconds(gpu, Operation::all_to_all, {4, 2}, sent) ==
        Approx(2. / 3 * 0.1 + 2 * 20e-6));
  CHECK(message_seconds(gpu, Operation::exchange, {4, 2}, sent) == Approx(0.1 + 2 * 10e-6));
}

TEST_CASE("packs of unequal cost: the slowest of two ranks, by hand") {
  PackSpread spread;
  spread.costs = {1, 0.5, 0.5, 0.25, 0.5, 1, 0.25, 0.25};
  // Steps of four packs: (1.5, 0.75), (0.75, 1.25).
  CHECK(spread.slowest(4, 2) == Approx((1.5 + 1.25) / 2));
  CHECK(spread.slowest(4, 1) == Approx((2.25 + 2) / 2));
  CHECK(spread.mean() == Approx(4.25 / 8));
  // An epoch shorter than a step begins again.
  spread.costs = {1, 0.5};
  CHECK(spread.slowest(4, 4) == 1);
  CHECK(spread.slowest(4, 2) == 2);
}

TEST_CASE("one GPU: the planner's time and memory are those of the dry run") {
  RunOptions options = small("model.recompute: none\n");
  options.gpu = &h100();
  const Json cost = training_cost(options, 1);
  const Fitted fitted(options);
  const LayoutCost costs(fitted.recipe, fitted.load.pack, h100(), 8, {});
  const Costed one = costs.of({}, true), few = costs.of({});
  REQUIRE(one.fits);
  CHECK(one.time.total() == Approx(cost["predicted"]["seconds"].get<double>()));
  CHECK(one.memory() == Approx(cost["memory_bytes"]["total"].get<double>()));
  CHECK(few.time.total() == Approx(one.time.total()).epsilon(1e-9));
  CHECK(few.memory() == Approx(one.memory()).epsilon(1e-3));
}

TEST_CASE("many GPUs: few blocks and two groups stand for all") {
  const Fitted fitted(small());
  const LayoutCost costs(fitted.recipe, fitted.load.pack, h100(), 8, {});
  for (const Candidate& one :
       {Candidate{.tp = 2, .dp = 4}, Candidate{.cp = 2, .cp_kind = models::CpKind::ring, .dp = 8},
        Candidate{.tp = 2, .cp = 2, .cp_kind = models::CpKind::all_to_all, .dp = 2}}) {
    INFO(one.layout());
    const Costed few = costs.of(one), whole = costs.of(one, true);
    CHECK(few.time.total() == Approx(whole.time.total()).epsilon(1e-9));
    CHECK(few.memory() == Approx(whole.memory()).epsilon(2e-3));
    // The dry run has all the ranks.
    const MemoryNeed need = memory_need(one.of(fitted.recipe), one.gpus(), one.recompute,
                                        Device::cuda, fitted.load.pack);
    CHECK(whole.need.total() == Approx(need.total()).epsilon(1e-3));
    const StepWork work =
        step_work(one.of(fitted.recipe), one.gpus(), one.recompute, Device::cuda, fitted.load.pack);
    double tp = 0;
    for (const auto& [what, sent] : work.messages)
      if (what.first == "tp") tp += message_seconds(h100(), what.second, {one.tp, one.tp}, sent);
    CHECK(whole.time.of("tp") == Approx(tp));
  }
}

TEST_CASE("every layout that is chosen is one that the run takes, and the best is best") {
  const Fitted fitted(small("data.packs: 64\n"));
  const Plan plan = make_plan(fitted.recipe, fitted.load, {64, 8, &h100()});
  REQUIRE(plan.best.size() > 5);
  CHECK(plan.slower > 0);
  int refused = 0;
  for (const auto& [why, count] : plan.layouts.refused)
    refused += count;
  CHECK(plan.layouts.drawn == refused + static_cast<int>(plan.layouts.accepted.size()));
  CHECK(plan.best.size() + plan.too_big.size() + static_cast<std::size_t>(plan.slower) ==
        plan.layouts.accepted.size());
  // None of those that were not costed is as fast as the tenth.
  const LayoutCost costs(fitted.recipe, fitted.load.pack, h100(), 8, {});
  for (Candidate one : plan.layouts.accepted) {
    const auto is_it = [&](const Costed& known) { return known.candidate.same_layout(one); };
    if (std::ranges::any_of(plan.best, is_it) || std::ranges::any_of(plan.too_big, is_it)) continue;
    CHECK(costs.time(one).total() > plan.best.at(kShownLayouts - 1).time.total());
  }
  CHECK(plan.whole_differs < 0.01);
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    const Costed& one = plan.best[i];
    CHECK(one.candidate.gpus() == 64);
    CHECK(one.memory() <= h100().usable());
    CHECK(one.time.total() >= plan.best[0].time.total());
    CHECK(one.whole == (i < kShownLayouts));
  }
}

TEST_CASE("a GPU of a file: like one of the table, but for what it says") {
  CHECK(usage_error([] { models::find_gpu("/nowhere/gpu.json"); }).find("no file") !=
        std::string::npos);
}
