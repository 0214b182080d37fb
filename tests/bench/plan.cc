// Published training rows against what the planner predicts, as Markdown tables: the five rows of
// NVIDIA's blog on the paper's architectures. Nothing is measured, and no GPU is needed.
//
// Two numbers are fitted, on the rows of 8k tokens, for m = 8 microbatches: the rate of products on
// the first, the part of tp's exchanges that is hidden on the second. The rows of 74k are held out.
// The paper names neither m nor what the state is sharded over, so each row is a range over m, with
// the optimizer's state sharded over 64, 16 or 4 ranks of dp. Then what the planner itself chooses
// on as many GPUs; the hybrid of an ST-DiT against what it saves; and a simulated growth of a run.
// Status 1 if a published layout is predicted to be faster than the planner's, or the hybrid
// slower.
//
// Usage: plan RECIPES     (examples/recipes, for 7b.yaml and 28b.yaml)
// SPDX-License-Identifier: Apache-2.0
#include "train/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "plan_scaling.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"

using namespace vfm;
using models::Gpu;
using nn::CpKind;
using nn::Recompute;
using train::Candidate;
using train::ShardKind;
using train::StepTime;

namespace {

constexpr double kTera = 1e12;

/// H100s as NeMo used them: what was published of its attention, and judged of the rest. Products
/// and tp_hidden are fitted.
Gpu h100_nemo() {
  Gpu gpu = models::find_gpu("h100");
  gpu.name = gpu.title = "h100-nemo";
  gpu.products = 640 * kTera;
  gpu.attention_forward = gpu.own_forward = 600 * kTera;
  gpu.attention_backward = gpu.own_backward = 518 * kTera;
  return gpu;
}

struct Row {
  const char *what, *recipe;
  bool long_pack;
  Candidate candidate;
  double published;  // tokens/s of a GPU
  std::vector<int> m;
};

Candidate layout(int tp, int cp, int pp, int dp) {
  return Candidate({.tp = tp,
                    .cp = cp,
                    .cp_kind = CpKind::ring,
                    .dp = dp,
                    .pp = pp,
                    .shard = ShardKind::optimizer});
}

const Row kRows[] = {
    {"7B 8k, CP2", "7b", false, layout(1, 2, 1, 64), 8969, {1, 2, 4, 8, 16}},
    {"28B 8k, TP2 PP2", "28b", false, layout(2, 1, 2, 64), 2392, {4, 8, 16, 32}},
    {"7B 74k, TP4 CP4", "7b", true, layout(4, 4, 1, 16), 2933, {1, 2, 4, 8}},
    {"28B 74k, TP8 CP4 PP4", "28b", true, layout(8, 4, 4, 4), 994, {8, 16, 32, 64, 128}},
};

/// A model and a pack, with m packs a rank.
struct Work {
  train::Recipe recipe;
  train::Workload load;

  Work(const std::string& folder, const Row& row, int m,
       const std::vector<std::string>& more = {}) {
    train::RunOptions options;
    std::vector<std::string> settings = {
        "ema.mode=off", "model.recompute=auto", fmt::format("data.packs={}", m * row.candidate.dp),
        fmt::format("data.tokens={}", row.long_pack ? 73728 : 8192)};
    settings.insert(settings.end(), more.begin(), more.end());
    options.recipe =
        train::make_recipe(train::read_settings(folder + "/" + row.recipe + ".yaml", settings));
    options.synthetic =
        row.long_pack ? train::SampleSizes{{32, 96, 96}} : train::SampleSizes{{8, 64, 64}};
    recipe = options.recipe;
    const auto set = train::kind_of(recipe.model.type).open(options, "train");
    set->fit(recipe);
    load = train::measure(recipe, *set);
  }
  train::LayoutCost cost(const Gpu& gpu) const { return {recipe, load.pack, gpu, 8, {}}; }
  /// Of one GPU in a second.
  double rate(double seconds, const Candidate& candidate) const {
    return static_cast<double>(recipe.data.tokens) * recipe.data.packs / seconds / candidate.gpus();
  }
  /// What NeMo takes: the weights of a sharded optimizer it gathers under the next step's forward,
  /// which our code does before it.
  double nemo_seconds(const Gpu& gpu, const Candidate& candidate) const {
    const StepTime time = cost(gpu).time(candidate);
    return time.total() - time.of("shards");
  }
};

/// The x in low..high at which `rising` is 0, or the nearer end.
double solve(double low, double high, const std::function<double(double)>& rising) {
  if (rising(low) >= 0) return low;
  if (rising(high) <= 0) return high;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (rising(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

Gpu fit(const std::string& folder) {
  Gpu gpu = h100_nemo();
  const Work first(folder, kRows[0], 8), second(folder, kRows[1], 8);
  const auto error = [&](const Work& work, const Row& row) {
    return work.rate(work.nemo_seconds(gpu, row.candidate), row.candidate) - row.published;
  };
  gpu.products = solve(300 * kTera, 989 * kTera, [&](double rate) {
    gpu.products = rate;
    return error(first, kRows[0]);
  });
  gpu.tp_hidden = solve(0, 1, [&](double part) {
    gpu.tp_hidden = part;
    return error(second, kRows[1]);
  });
  return gpu;
}

/// Heads dealt out where they can be: what our code does best.
Candidate with_our_kind(Candidate candidate, const train::Recipe& recipe) {
  if (recipe.model.dit.num_attention_heads % (candidate.tp * candidate.cp) == 0)
    candidate.cp_kind = CpKind::all_to_all;
  return candidate;
}

/// "GiB of nothing recomputed | the least recomputation that fits".
std::string memory_words(const Work& work, const Gpu& gpu, Candidate candidate) {
  std::string least = "nothing fits";
  double none = 0;
  for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                    Recompute::block_but_attention, Recompute::block}) {
    candidate.recompute = recompute;
    const train::Costed costed = work.cost(gpu).of(candidate, true);
    if (recompute == Recompute::none) none = costed.memory() / (1 << 30);
    if (!costed.fits) continue;
    least = nn::recompute_name(recompute);
    break;
  }
  return fmt::format("{:.1f} | {}", none, least);
}

void rows(const std::string& folder, const Gpu& nemo) {
  fmt::print(
      "\n| row | m | published tokens/s | h100-nemo | error, % | ours (h100) | GiB, nothing "
      "recomputed | fits from |\n|---|---:|---:|---:|---:|---:|---:|---|\n");
  const Gpu& ours = models::find_gpu("h100");
  for (const Row& row : kRows)
    for (const int m : row.m) {
      const Work work(folder, row, m);
      const double rate = work.rate(work.nemo_seconds(nemo, row.candidate), row.candidate);
      const Candidate our_kind = with_our_kind(row.candidate, work.recipe);
      const double own = work.rate(work.cost(ours).time(our_kind).total(), our_kind);
      fmt::print("| {} | {} | {:.0f} | {:.0f} | {:+.1f} | {:.0f} | {} |\n", row.what, m,
                 row.published, rate, 100 * (rate / row.published - 1), own,
                 memory_words(work, nemo, row.candidate));
    }
  Row alone = kRows[0];
  alone.candidate = Candidate({.dp = 64});
  const Work work(folder, alone, 8);
  const train::Costed costed = work.cost(nemo).of(alone.candidate);
  fmt::print("| 7B 8k alone, nothing sharded or recomputed | 8 | out of memory | {} | | | {} |\n",
             costed.fits ? "fits: WRONG" : "does not fit",
             memory_words(work, nemo, alone.candidate));
}

/// Term by term the most that one has more than the other.
std::string most_more(const StepTime& slow, const StepTime& fast) {
  std::string term = "nothing";
  double most = 0;
  for (const auto& [name, seconds] : slow.terms)
    if (const double more = seconds - fast.of(name); more > most) most = more, term = name;
  return term;
}

/// What the planner finds for the same GPUs, and where the published layout loses. Returns whether
/// none is predicted to be faster.
bool better(const std::string& folder, const Gpu& nemo) {
  fmt::print(
      "\n| row | GPUs | published layout, s | the planner's best | s | the published one loses by, "
      "% | most of it |\n|---|---:|---:|---|---:|---:|---|\n");
  bool good = true;
  for (const Row& row : kRows) {
    const Work work(folder, row, 8);
    const int gpus = row.candidate.gpus();
    const StepTime published = work.cost(nemo).time(row.candidate);
    const train::Plan plan = train::make_plan(work.recipe, work.load, {gpus, 8, &nemo});
    const train::Costed& best = plan.best.at(0);
    const double seconds = work.nemo_seconds(nemo, row.candidate),
                 loses = seconds / best.time.total() - 1;
    good = good && loses >= 0;
    fmt::print("| {} | {} | {:.3f} | {}, {}, {} packs together | {:.3f} | {:.1f} | {} |\n",
               row.what, gpus, seconds, best.candidate.layout(),
               nn::recompute_name(best.candidate.recompute), best.candidate.micro_packs,
               best.time.total(), 100 * loses,
               loses > 0.05 ? most_more(published, best.time) : "within 5 %");
  }
  return good;
}

/// An ST-DiT of the 7B's width on a pack of 74k tokens, shared by ranks of cp: tokens for heads in
/// all three attentions against the hybrid. Returns whether the hybrid is faster everywhere, and by
/// more across nodes.
bool hybrids(const std::string& folder) {
  fmt::print(
      "\n| cp | all_to_all, s | hybrid: all_to_all, s | gather | ring | both, of 8 heads' ranks | "
      "the best hybrid is faster by, % |\n|---|---:|---:|---:|---:|---:|---:|\n");
  const Gpu& gpu = models::find_gpu("h100");
  bool good = true;
  double inside = 0;
  for (const int cp : {4, 8, 16, 32}) {
    Row row = kRows[2];
    row.candidate = Candidate({.tp = 1, .cp = cp, .cp_kind = CpKind::all_to_all, .dp = 1});
    row.candidate.recompute = Recompute::block_but_attention;
    const Work work(folder, row, 1, {"model.type=stdit", "model.num_layers=18"});
    const train::LayoutCost cost = work.cost(gpu);
    const double plain = cost.time(row.candidate).total();
    fmt::print("| {} | {:.3f} ", cp, plain);
    double least = plain;
    for (const auto& [kind, heads] : {std::pair{CpKind::all_to_all, 1},
                                      {CpKind::gather, 1},
                                      {CpKind::ring, 1},
                                      {CpKind::all_to_all_ring, 8}}) {
      if (heads >= cp) {
        fmt::print("| ");
        continue;
      }
      Candidate one = row.candidate;
      one.hybrid = true, one.cp_kind = kind, one.cp_heads = heads;
      const double seconds = cost.time(one).total();
      least = std::min(least, seconds);
      fmt::print("| {:.3f} ", seconds);
    }
    const double gain = plain / least - 1;
    if (cp <= 8) inside = std::max(inside, gain);
    good = good && gain > 0 && (cp <= 8 || gain > inside);
    fmt::print("| {:.1f} |\n", 100 * gain);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: plan RECIPES\n");
    return 2;
  }
  const Gpu nemo = fit(argv[1]);
  fmt::print("Fitted on the rows of 8k, m = 8: products {:.0f} TFLOP/s, {:.0f} % of tp hidden.\n",
             nemo.products / kTera, 100 * nemo.tp_hidden);
  rows(argv[1], nemo);
  const bool best = better(argv[1], nemo), hybrid = hybrids(argv[1]);
  bench::simulate_scaling(argv[1]);
  if (!best)
    fmt::print(stderr, "plan: a published layout is predicted to be faster than our best\n");
  if (!hybrid) fmt::print(stderr, "plan: the hybrid is not faster, or not more so across nodes\n");
  return best && hybrid ? 0 : 1;
}
