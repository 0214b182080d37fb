// The planner's parts against what is worked out by hand, and against the dry run.
// SPDX-License-Identifier: Apache-2.0
#include "train/plan/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <tuple>

#include "base/json.h"
#include "support/usage_error.h"
#include "train/cost/step_work.h"
#include "train/kind.h"
#include "train/plan/links.h"
#include "train/plan/pipeline_time.h"
#include "train/plan/state_time.h"
#include "train/plan/tp_chunks.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"
#include "train/step/parallel.h"

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

/// Whether both differ in recompute, offload and micro_packs at most.
bool same_layout(const Candidate& a, const Candidate& b) {
  return a.layout() == b.layout() && a.tp_chunks == b.tp_chunks;
}

}  // namespace

TEST_CASE("groups and nodes: the group that has fewest on a node, eight a node") {
  const Candidate one({.tp = 4, .cp = 4, .dp = 4});
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
  Candidate shared = one;
  shared.shard = ShardKind::optimizer, shared.replicate = 2;
  const auto of_shared = [&](std::string_view axes) {
    const GroupOnNodes group = group_on_nodes(axes, shared, 16);
    return std::pair(group.ranks, group.on_node);
  };
  CHECK(of_shared("cp+shard") == std::pair(8, 4));   // 0, 4, 8, 12 | 16, 20, 24, 28
  CHECK(of_shared("replicate") == std::pair(2, 1));  // 0 | 32
}

TEST_CASE("groups that straddle nodes: the worst counts, not that of rank 0") {
  const auto on = [&](std::string_view axes, const Candidate& one, int per_node) {
    const GroupOnNodes group = group_on_nodes(axes, one, per_node);
    return std::pair(group.ranks, group.on_node);
  };
  const Candidate threes({.tp = 3, .dp = 16});
  CHECK(on("tp", threes, 8) == std::pair(3, 1));  // 6, 7 | 8
  CHECK(on("tp", threes, 48) == std::pair(3, 3));
  CHECK(on("tp", Candidate({.tp = 3, .dp = 2}), 8) == std::pair(3, 3));  // 6 ranks in all
  CHECK(on("tp", Candidate({.tp = 5, .dp = 2}), 8) == std::pair(5, 2));  // 5, 6, 7 | 8, 9
  const Candidate fours({.tp = 4, .cp = 4, .dp = 9});
  CHECK(on("tp", fours, 72) == std::pair(4, 4));
  CHECK(on("cp", fours, 72) == std::pair(4, 2));      // 64, 68 | 72, 76
  CHECK(on("tp+cp", fours, 72) == std::pair(16, 8));  // 64 to 71 | 72 to 79
  CHECK(on("dp", fours, 72) == std::pair(9, 4));      // 0, 16, 32, 48, 64 | 80, 96, 112, 128
  // As many as one likes: of an axis whose ranks are not counted yet.
  const auto neighbours = [](int ranks, int per_node) {
    return models::worst_neighbours(ranks, per_node).on_node;
  };
  CHECK(neighbours(3, 8) == 1);
  CHECK(neighbours(6, 8) == 2);
  CHECK(neighbours(4, 8) == 4);
  CHECK(neighbours(16, 8) == 8);
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

TEST_CASE("many GPUs: few blocks and few ranks stand for all, and memory is the dry run's",
          "[long]") {
  const Fitted fitted(small()), hybrid(small("model.type: stdit\n"));
  using enum ShardKind;
  using nn::CpKind;
  for (const Candidate& one : {
           Candidate({.tp = 2, .dp = 4}),
           Candidate({.tp = 4, .tp_chunks = 8, .dp = 2}, nn::Recompute::elementwise),
           Candidate({.cp = 2, .cp_kind = CpKind::ring, .dp = 8}),
           Candidate({.tp = 2, .cp = 2, .cp_kind = CpKind::all_to_all, .dp = 2}),
           Candidate({.dp = 8, .shard = optimizer}),
           Candidate({.tp = 2, .cp = 2, .cp_kind = CpKind::gather, .dp = 4, .shard = optimizer}),
           Candidate({.dp = 8, .shard = full}),
           Candidate({.dp = 8, .shard = full}, nn::Recompute::block),
           Candidate({.tp = 2, .dp = 4, .shard = full, .replicate = 2}),
           Candidate({.dp = 2, .shard = full, .reshard = dist::Reshard::never}),
           Candidate({.dp = 2, .pp = 2}),
           Candidate({.tp = 2, .pp = 3, .vpp = 2}),
           Candidate({.dp = 4, .pp = 2, .shard = optimizer}),
           Candidate({.tp = 2, .cp = 2, .dp = 2, .pp = 2, .vpp = 3, .shard = full, .replicate = 2}),
           Candidate({.cp = 4, .cp_kind = CpKind::ring, .hybrid = true, .dp = 2}),
           Candidate(
               {.cp = 2, .cp_kind = CpKind::all_to_all, .hybrid = true, .dp = 2, .shard = full}),
       }) {
    INFO(one.layout());
    const Fitted& of = one.hybrid ? hybrid : fitted;
    const LayoutCost costs(of.recipe, of.load.pack, h100(), 8, {});
    const Costed few = costs.of(one), whole = costs.of(one, true);
    const Recipe recipe = one.of(of.recipe);
    CHECK_NOTHROW(check_layout(recipe, one.gpus(), 8));
    const MemoryNeed need =
        memory_need(recipe, one.gpus(), one.recompute, Device::cuda, of.load.pack);
    CHECK(whole.need.total() == need.total());
    CHECK(few.need.total() == Approx(need.total()).epsilon(one.pp > 1 ? 0.02 : 0.01));
    CHECK(few.time.total() == Approx(whole.time.total()).epsilon(0.015));
  }
}

TEST_CASE("of drawn layouts the first look at memory is within 3 % of the count, and never more",
          "[long]") {
  const Fitted fitted(small("data: {tokens: 4096, packs: 64}\n"));
  StageCuts cuts(fitted.recipe);
  LayoutMemory memory(fitted.recipe, fitted.load.pack, cuts, Device::cuda);
  std::vector<Candidate> accepted =
      enumerate_layouts(fitted.recipe, fitted.load.shortest, 64, 8).accepted;
  int pipelines = 0;
  for (std::size_t i = 0; i < accepted.size(); i += 17) {
    Candidate& one = accepted[i];
    one.recompute = static_cast<nn::Recompute>(i % 4);
    one.micro_packs = one.packs_of_rank(64) % 2 == 0 ? 1 + static_cast<int>(i / 17 % 2) : 1;
    const double whole = memory.whole(one).total();
    INFO(one.layout() << ", " << nn::recompute_name(one.recompute));
    CHECK(memory.few(one).total() == Approx(whole).epsilon(0.03));
    CHECK(0.97 * memory.at_least(one).total() <= whole);
    CHECK(memory.state(one).total() <= 1.03 * whole);
    pipelines += one.pp > 1;
  }
  CHECK(pipelines > 20);
}

TEST_CASE("no layout is passed over that fits by little", "[long]") {
  const Fitted fitted(small("data: {packs: 4}\n"));
  // As much memory as a pipeline needs that recomputes nothing, and hardly a byte more.
  models::Gpu gpu = h100();
  const Candidate pipeline({.dp = 2, .pp = 2, .vpp = 2});
  const PackSpread spread = spread_of_packs(fitted.load);
  const double needed =
      LayoutCost(fitted.recipe, fitted.load.pack, gpu, 8, spread).of(pipeline, true).memory();
  gpu.memory = (needed + 1 + 2 * static_cast<double>(1 << 30)) / 0.95;
  REQUIRE(gpu.usable() == Approx(needed).epsilon(1e-6));
  const Plan plan = make_plan(fitted.recipe, fitted.load, {4, 8, &gpu});
  const auto recompute_of_pipeline = [&](const Plan& of) {
    const auto found = std::ranges::find_if(
        of.best, [&](const Costed& one) { return same_layout(one.candidate, pipeline); });
    REQUIRE(found != of.best.end());
    CHECK(found->whole);
    return found->candidate.recompute;
  };
  CHECK(recompute_of_pipeline(plan) == nn::Recompute::none);
  REQUIRE(plan.best.size() >= kShownLayouts);
  const LayoutCost cost(fitted.recipe, fitted.load.pack, gpu, 8, spread);
  for (std::size_t i = 0; i < kShownLayouts; ++i) {
    // With less recomputation it does not fit.
    Candidate less = plan.best[i].candidate;
    CHECK(cost.of(less, true).fits);
    if (less.recompute == nn::Recompute::none) continue;
    less.recompute = static_cast<nn::Recompute>(static_cast<int>(less.recompute) - 1);
    INFO(less.layout());
    CHECK(!cost.of(less, true).fits);
  }
  // A few bytes less, and it recomputes.
  gpu.memory -= 8;
  CHECK(recompute_of_pipeline(make_plan(fitted.recipe, fitted.load, {4, 8, &gpu})) ==
        nn::Recompute::elementwise);
}

TEST_CASE("what stages have under way at once is what the schedule's bounds say") {
  for (const auto& [pp, vpp, m] : {std::tuple{4, 1, 9}, {4, 1, 2}, {4, 2, 12}, {3, 4, 9}})
    for (int stage = 0; stage < pp; ++stage) {
      int most = 0;
      for (const std::vector<int>& counts : most_under_way({pp, vpp}, m, stage)) {
        REQUIRE(counts.size() == static_cast<std::size_t>(vpp));
        most = std::max(most, std::accumulate(counts.begin(), counts.end(), 0));
      }
      const int bound = vpp == 1 ? pp - stage : 2 * (pp - stage - 1) + (vpp - 1) * pp + 1;
      CHECK(most == std::min(m * vpp, bound));
    }
}

TEST_CASE("what tp exchanges is what the dry run sends") {
  const Fitted fitted(small());
  const LayoutCost costs(fitted.recipe, fitted.load.pack, h100(), 8, {});
  const Candidate one({.tp = 2, .dp = 4});
  const StepWork work =
      step_work(one.of(fitted.recipe), one.gpus(), one.recompute, Device::cuda, fitted.load.pack);
  double tp = 0;
  for (const auto& [what, sent] : work.messages)
    if (what.first == "tp") tp += message_seconds(h100(), what.second, {one.tp, one.tp}, sent);
  CHECK(costs.of(one).time.of("tp") == Approx(tp));
}

TEST_CASE("rows along tp in chunks: what products hide, by hand, and what pays") {
  // Products of 512 wide, in f32, of two ranks: a GPU that multiplies 1e12 a second and sends 1e9.
  const Fitted fitted(small("model.compute: f32\nparallel: {tp: 2}\ndata: {tokens: 8192}\n"));
  models::Gpu gpu = h100();
  gpu.products = gpu.peak, gpu.peak_f32 = 1e12;
  gpu.gap = 1e-6, gpu.bandwidth = 1e12;
  gpu.inside = {.bandwidth = 1e9, .latency = 0};
  const int width = fitted.recipe.model.dit.width();
  REQUIRE(width == 1024);
  // Half of the rows go, 4 bytes a number.
  const double rows = 8192, sent = rows / 2 * width * 4 / gpu.inside.bandwidth;
  const auto product = [&](double columns) { return 2 * rows * width * columns / 2 / 1e12; };
  const TpTime whole = tp_time(fitted.recipe, gpu, {2, 2}, 1),
               chunks = tp_time(fitted.recipe, gpu, {2, 2}, 4);
  CHECK(whole.sent == Approx(6 * 2 * sent));
  CHECK(whole.exposed == Approx(whole.sent));
  CHECK(chunks.sent == Approx(whole.sent));
  // Queries, keys and values, twice the MLP's four widths, and three of one width.
  double exposed = 0;
  for (const double columns : {3., 4., 4., 1., 1., 1.})
    exposed += std::max(0.0, 2 * sent - 2 * product(columns * width) * 3 / 4);
  CHECK(exposed > 0);
  CHECK(chunks.exposed == Approx(exposed));
  CHECK(chunks.added == Approx(6 * (5e-6 + 1.5 * rows * width * 4 / 1e12)));
  // Of chunks of 512 rows or more those that leave least: here as many as there can be.
  CHECK(paying_tp_chunks(fitted.recipe, gpu, 8) == 16);
  gpu.gap = 1;
  CHECK(paying_tp_chunks(fitted.recipe, gpu, 8) == 1);
  gpu.gap = 1e-6, gpu.cpu = true;  // the same cores compute and exchange
  CHECK(paying_tp_chunks(fitted.recipe, gpu, 8) == 1);
  gpu.cpu = false, gpu.tp_hidden = 1;
  CHECK(paying_tp_chunks(fitted.recipe, gpu, 8) == 1);
  Recipe recipe = fitted.recipe;
  recipe.data.tokens = 1023;  // chunks of fewer rows
  gpu.tp_hidden = 0;
  CHECK(paying_tp_chunks(recipe, gpu, 8) == 1);
  recipe.parallel.tp = 1;
  CHECK(paying_tp_chunks(recipe, gpu, 8) == 1);
  // A number of the recipe stands; without one it is what pays, and 1 of an unknown GPU.
  recipe = fitted.recipe;
  settle_tp_chunks(recipe, &gpu, 8);
  CHECK(recipe.parallel.chunks() == 16);
  settle_tp_chunks(recipe, nullptr, 8);
  CHECK(recipe.parallel.chunks() == 1);
  recipe.parallel.tp_chunks = 3;
  settle_tp_chunks(recipe, &gpu, 8);
  CHECK(recipe.parallel.chunks() == 3);
  CHECK(models::known_gpu("NVIDIA GB200, driver 580")->name == "gb200");
  CHECK(models::known_gpu("NVIDIA T4") == nullptr);
}

TEST_CASE("the planner's tp with chunks is what the dry run sends, less what products hide") {
  const Fitted fitted(small());
  models::Gpu gpu = h100();
  gpu.inside.latency = 1e-7;  // of messages as small as here
  const LayoutCost costs(fitted.recipe, fitted.load.pack, gpu, 8, {});
  const Candidate one({.tp = 2, .tp_chunks = 4, .dp = 4});
  const Recipe recipe = one.of(fitted.recipe);
  const StepWork work =
      step_work(recipe, one.gpus(), one.recompute, Device::cuda, fitted.load.pack);
  const TpTime time = tp_time(recipe, gpu, {2, 2}, 4);
  double tp = 0;
  for (const auto& [what, sent] : work.messages)
    if (what.first == "tp")
      tp += message_seconds(gpu, what.second, {2, 2}, sent) *
            (what.second == Operation::exchange ? time.exposed / time.sent : 1);
  CHECK(costs.of(one).time.of("tp") == Approx(tp));
  CHECK(tp < costs.of(Candidate({.tp = 2, .dp = 4})).time.of("tp"));
}

TEST_CASE("attention hides what goes round a ring, but for the last gradients of one key head") {
  const auto cp_time = [](const std::string& settings, const Candidate& one, double bandwidth) {
    const Fitted fitted(small(settings));
    models::Gpu gpu = h100();
    gpu.inside = {.bandwidth = bandwidth, .latency = 0};
    const LayoutCost costs(fitted.recipe, fitted.load.pack, gpu, 8, {});
    const StepWork work =
        step_work(one.of(fitted.recipe), one.gpus(), one.recompute, Device::cuda, fitted.load.pack);
    const auto sent = work.messages.at({"cp", Operation::exchange});
    return std::pair(costs.of(one).time, message_seconds(gpu, Operation::exchange, {4, 4}, sent));
  };
  const Candidate ring({.cp = 4, .cp_kind = nn::CpKind::ring});
  CHECK(cp_time("", ring, 1e15).first.of("cp") == Approx(0).margin(1e-9));
  // Little of it is hidden where links are slow.
  const auto [slow, all] = cp_time("", ring, 1e6);
  CHECK(slow.of("cp") == Approx(all - slow.of("attention") * 3 / 4));
  // Keys and values go round three times in bf16 twice, and their gradients as often in f32.
  const auto [one, round] = cp_time("model.num_attention_heads: 1\n", ring, 1e15);
  CHECK(one.of("cp") == Approx(round / 6));
}

TEST_CASE("a pipeline takes what its schedule says") {
  const auto even = [](int pp) {
    const auto stages = static_cast<std::size_t>(pp);
    return StageSeconds{std::vector<double>(stages, 1), std::vector<double>(stages, 2), {}};
  };
  for (const auto& [pp, vpp, m] : {std::tuple{2, 1, 5}, {4, 1, 40}, {4, 2, 64}, {8, 4, 64}})
    CHECK(pipeline_seconds({pp, vpp}, even(pp), m) == Approx((m + (pp - 1.0) / vpp) * 3));
  // Of many a few are run: also where the last turn is short.
  for (const auto& [pp, vpp, m] : {std::tuple{3, 2, 31}, {4, 1, 33}, {4, 2, 38}}) {
    const std::vector<MicrobatchCost> costs(static_cast<std::size_t>(m));
    const std::vector<double> ones(costs.size(), 1);
    StageSeconds stages = even(pp);
    stages.forward[1] = 1.3;
    stages.messages.assign(static_cast<std::size_t>(pp * vpp - 1), 0.1);
    CHECK(pipeline_seconds({pp, vpp}, stages, m) ==
          Approx(run_schedule(schedule_in_order({pp, vpp}, costs), {pp, vpp}, stages, ones)));
  }
  // Two stages, two microbatches, the second stage twice as slow: forward 1, then it is busy for
  // two of 2 + 4, and the first one's last backward.
  StageSeconds uneven{{1, 2}, {2, 4}, {}};
  CHECK(pipeline_seconds({2, 1}, uneven, 2) == Approx(1 + 2 * 6 + 2));
  // A message before the first, and one after the last; between them it waits for none.
  uneven.messages = {0.25};
  CHECK(pipeline_seconds({2, 1}, uneven, 2) == Approx(1 + 2 * 6 + 2 + 0.5));
  // One microbatch through three stages: each boundary there and back.
  StageSeconds three = even(3);
  three.messages = {0.25, 2};
  CHECK(pipeline_seconds({3, 1}, three, 1) == Approx(3 * 3 + 2 * (0.25 + 2)));
  // Small packs come where the others wait.
  const std::vector<double> costs = {1.5, 1.5, 0.5, 0.5};
  const std::vector<MicrobatchCost> given = {{.5, 1}, {.5, 1}, {1. / 6, 1. / 3}, {1. / 6, 1. / 3}};
  CHECK(pipeline_seconds({2, 1}, even(2), costs) <=
        run_schedule(schedule_in_order({2, 1}, given), {2, 1}, even(2), costs));
}

TEST_CASE("weights and gradients on their way: what computing does not hide, by hand") {
  models::Gpu gpu = h100();
  gpu.inside = {.bandwidth = 1e9, .latency = 0};
  Candidate one({.dp = 4, .shard = ShardKind::full});
  StageWork work;
  work.blocks = 4;
  // Two passes of four blocks: a gather takes 1 s of each, and a sum 2 s.
  work.of_blocks[{"cp+shard", Operation::all_gather}] = {16, 16e9};
  work.of_blocks[{"cp+shard", Operation::reduce_scatter}] = {8, 16e9};
  work.all.messages = work.of_blocks;
  work.all.messages[{"cp+shard", Operation::all_gather}].bytes += 3e9;  // of what is in no block
  const auto exposed = [&](double computing) {
    return state_time(gpu, 8, one, work, {.computing = computing, .passes = 2}).shards;
  };
  // A block computes for 100 s: only what is first in forward and in backward, and the last sum.
  CHECK(exposed(800) == Approx(3 + 2 * (1 + 1) + 2));
  // Of 3 s, 1 s forward hides a gather, and 2 s backward two of the three seconds there.
  CHECK(exposed(24) == Approx(3 + 2 * (1 + 1 + 3 * 1) + 2));
  one.reshard = dist::Reshard::never;
  work.of_blocks[{"cp+shard", Operation::all_gather}] = {4, 4e9};
  work.all.messages = work.of_blocks;
  CHECK(exposed(800) == Approx(1 + 2));
  // Of the state alone gradients travel under the last backward, and weights under nothing.
  one.shard = ShardKind::optimizer, one.reshard = dist::Reshard::automatic;
  work.all.messages = {{{"cp+shard", Operation::all_gather}, {2, 5e9}},
                       {{"cp+shard", Operation::reduce_scatter}, {4, 8e9}}};
  const StateTime time = state_time(gpu, 8, one, work, {.computing = 18, .passes = 2});
  CHECK(time.shards == Approx(5));
  CHECK(time.gradients == Approx(8 - 6));
}

TEST_CASE("every layout that is chosen is one that the run takes, and the best is best", "[long]") {
  const Fitted fitted(small("data.packs: 64\n"));
  const Plan plan = make_plan(fitted.recipe, fitted.load, {64, 8, &h100()});
  REQUIRE(plan.best.size() >= kShownLayouts);
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
    const auto is_it = [&](const Costed& known) { return same_layout(known.candidate, one); };
    if (std::ranges::any_of(plan.best, is_it) || std::ranges::any_of(plan.too_big, is_it)) continue;
    CHECK(costs.time(one).total() > 0.99 * plan.best.at(kShownLayouts - 1).time.total());
  }
  CHECK(plan.whole_differs < 0.01);
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    const Costed& one = plan.best[i];
    CHECK(one.candidate.gpus() == 64);
    if (one.whole) CHECK(one.memory() <= h100().usable());
    CHECK(one.time.total() >= 0.99 * plan.best[0].time.total());
    CHECK(one.whole == (i < kShownLayouts));
  }
}

TEST_CASE("the candidate of a recipe has what its ranks would exchange on such nodes") {
  const Fitted fitted(small("parallel: {cp: 8}\ndata: {packs: 1}\n"));
  const auto kind = [&](int per_node) {
    const Candidate one = candidate_of(fitted.recipe, 8, per_node, nn::Recompute::none);
    return std::pair(one.cp_kind, one.cp_heads);
  };
  CHECK(kind(8).first == nn::CpKind::all_to_all);
  CHECK(kind(64).first == nn::CpKind::all_to_all);
  CHECK(kind(2) == std::pair(nn::CpKind::all_to_all_ring, 2));
}

TEST_CASE("the settings of a candidate make its layout of any recipe") {
  Candidate one({.tp = 2, .cp = 2, .cp_kind = nn::CpKind::ring, .hybrid = true, .dp = 4});
  one.shard = ShardKind::full, one.replicate = 2, one.reshard = dist::Reshard::never,
  one.micro_packs = 2;
  for (const Candidate& candidate : {one, Candidate({.tp = 2, .tp_chunks = 4}),
                                     Candidate({.dp = 2, .pp = 2, .vpp = 3}), Candidate{}})
    for (const char* more : {"{}", "parallel: {pp: 2, vpp: 2, stages: [2, 2, 1, 1]}\n",
                             "parallel: {tp: 2, tp_chunks: 8}\n",
                             "parallel: {cp: 4, cp_kind: all_to_all, hybrid: true, shard: full, "
                             "reshard: false, replicate: 2}\n"}) {
      auto settings = parse_yaml(std::string("model.type: stdit\n"), "type");
      for (const std::string text : {kSmall, more})
        for (const auto& setting : parse_yaml(text, "recipe"))
          settings.push_back(setting);
      const std::set<std::string> given = make_recipe(settings).given;
      for (const std::string& text : candidate.settings(given)) {
        const std::size_t equals = text.find('=');
        for (const auto& setting :
             parse_yaml(text.substr(0, equals) + ": " + text.substr(equals + 1), "set"))
          settings.push_back(setting);
      }
      const dist::Layout made = make_recipe(settings).parallel,
                         wanted = candidate.of(Recipe()).parallel;
      INFO(candidate.layout() << " over " << more);
      CHECK(made.chunks() == wanted.chunks());
      CHECK(std::tuple(made.tp, made.cp, made.cp_kind, made.cp_heads, made.hybrid, made.pp,
                       made.vpp, made.stages, made.shard, made.replicate, made.reshard) ==
            std::tuple(wanted.tp, wanted.cp, wanted.cp_kind, wanted.cp_heads, wanted.hybrid,
                       wanted.pp, wanted.vpp, wanted.stages, wanted.shard, wanted.replicate,
                       wanted.reshard));
    }
}

TEST_CASE("a GPU of a file: like one of the table, but for what it says") {
  CHECK(usage_error([] { models::find_gpu("/nowhere/gpu.json"); }).find("no file") !=
        std::string::npos);
}
