// SPDX-License-Identifier: Apache-2.0
#include "plan_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"
#include "train/kind.h"
#include "train/plan/plan.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"

namespace vfm::bench {
namespace {

using train::StepTime;

// Packs are full to 85 to 100 %; nodes differ by 1 %, and one of 250 is 15 % slower than it should
// be, as a GPU is that got hot.
constexpr double kLeastFill = 0.85, kNodeSpread = 0.01, kSlowNode = 0.15, kSlowNodes = 1.0 / 250;
constexpr int kPerNode = 8, kSteps = 50, kPacksOfRank = 4;
constexpr std::uint64_t kSeed = 20241124;

/// What each node takes of what it should, in a whole run.
std::vector<double> draw_nodes(int nodes) {
  const Random random(kSeed, Purpose::test, 0, random_key("nodes"));
  std::vector<double> slower;
  for (int i = 0; i < nodes; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    slower.push_back(1 + kNodeSpread * std::abs(static_cast<double>(random.normal(2 * at))) +
                     (random.uniform((std::uint64_t{1} << 40) + at) < kSlowNodes ? kSlowNode : 0));
  }
  return slower;
}

/// Means over steps of what the last of the ranks with samples of their own takes, in parts of what
/// one with full packs on a node as it should be does.
struct Slowest {
  double packs = 0, nodes = 0, both = 0, mean = 0;
};

/// `ranks` with samples of their own, each `gpus` GPUs one after the other.
Slowest simulate(int ranks, int gpus, const std::vector<double>& nodes) {
  Slowest sum;
  for (int step = 0; step < kSteps; ++step) {
    const Random random(kSeed, Purpose::test, static_cast<std::uint32_t>(step),
                        random_key("packs"));
    Slowest most;
    for (int rank = 0; rank < ranks; ++rank) {
      double fill = 0;
      for (int pack = 0; pack < kPacksOfRank; ++pack)
        fill += kLeastFill +
                (1 - kLeastFill) * random.uniform(static_cast<std::uint64_t>(rank) * kPacksOfRank +
                                                  static_cast<std::uint64_t>(pack));
      fill /= kPacksOfRank;
      const int first = rank * gpus / kPerNode, last = (rank * gpus + gpus - 1) / kPerNode;
      const double slow = *std::max_element(nodes.begin() + first, nodes.begin() + last + 1);
      most.packs = std::max(most.packs, fill);
      most.nodes = std::max(most.nodes, slow);
      most.both = std::max(most.both, fill * slow);
      sum.mean += fill / ranks / kSteps;
    }
    sum.packs += most.packs / kSteps;
    sum.nodes += most.nodes / kSteps;
    sum.both += most.both / kSteps;
  }
  return sum;
}

/// That of a pass, which ranks with less to do wait for: all but the state's way.
double passing(const StepTime& time) {
  return time.total() - time.of("gradients") - time.of("shards") - time.of("optimizer");
}

struct Run {
  train::Recipe recipe;
  train::Workload load;
};

Run open_run(const std::string& recipes, int packs) {
  train::RunOptions options;
  options.recipe = train::make_recipe(train::read_settings(
      recipes + "/7b.yaml", {"ema.mode=off", "model.recompute=auto", "data.tokens=73728",
                             fmt::format("data.packs={}", packs)}));
  options.synthetic = {{32, 96, 96}};
  Run run{options.recipe, {}};
  const auto set = train::kind_of(run.recipe.model.type).open(options, "train");
  set->fit(run.recipe);
  run.load = train::measure(run.recipe, *set);
  return run;
}

}  // namespace

void simulate_scaling(const std::string& recipes) {
  const models::Gpu& gpu = models::find_gpu("h100");
  // As many packs a GPU everywhere; eight GPUs share four of them.
  const auto packs_on = [](int nodes) { return nodes * kPacksOfRank; };
  const Run small = open_run(recipes, packs_on(8));
  const train::Plan plan =
      train::make_plan(small.recipe, small.load, {8 * kPerNode, kPerNode, &gpu});
  train::Candidate candidate = plan.best.at(0).candidate;
  fmt::print(
      "\nSimulated: 7B, packs of 73,728 tokens, {} on 8 nodes of H100s, and more of dp on more.\n\n"
      "| nodes | predicted, s | of it the state's way | unequal packs | slow nodes | all of it | "
      "of "
      "the tokens/s of 8 even nodes, % | most is lost to "
      "|\n|---:|---:|---:|---:|---:|---:|---:|---|\n",
      candidate.layout());
  double first = 0;
  const int sharers = candidate.gpus() / candidate.dp, replicas = candidate.replicate,
            dp = candidate.dp;
  for (const int nodes : {8, 32, 1024}) {
    const Run run = open_run(recipes, packs_on(nodes));
    candidate.dp = nodes * kPerNode / sharers;
    candidate.replicate = replicas > 1 ? replicas * candidate.dp / dp : 1;
    const train::LayoutCost cost(run.recipe, run.load.pack, gpu, kPerNode, {});
    const StepTime time = cost.time(candidate);
    const double pass = passing(time), state = time.total() - pass;
    const Slowest slowest = simulate(candidate.dp, sharers, draw_nodes(nodes));
    // Packs that are as full as the mean of all would take `even`.
    const double even = pass * slowest.mean + state, all = pass * slowest.both + state;
    if (first == 0) first = even;
    const std::pair<double, const char*> losses[] = {
        {state, "the state's way"},
        {pass * (slowest.packs - slowest.mean), "unequal packs"},
        {pass * (slowest.nodes - 1), "slow nodes"}};
    fmt::print("| {} | {:.3f} | {:.3f} | {:+.3f} | {:+.3f} | {:.3f} | {:.1f} | {} |\n", nodes, even,
               state, losses[1].first, losses[2].first, all, 100 * first / all,
               std::ranges::max_element(losses)->second);
  }
}

}  // namespace vfm::bench
