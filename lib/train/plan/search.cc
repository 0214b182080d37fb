// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "train/kind.h"
#include "train/plan/plan.h"

namespace vfm::train {
namespace {

using models::Recompute;

/// Candidates of one layout, of which the fastest that fits is kept, or the smallest.
class OneLayout {
 public:
  OneLayout(const Recipe& recipe, const LayoutCost& cost)
      : recipe_(recipe), kind_(kind_of(recipe.model.type)), cost_(cost) {}

  Costed best(Candidate candidate) const {
    const int own = candidate.packs_of_rank(recipe_.data.packs);
    std::optional<Costed> best;
    for (int together = 1; together <= own; together *= 2) {
      if (own % together != 0) break;
      candidate.micro_packs = together;
      Costed next = least_recompute(candidate);
      if (best && !better(next, *best)) break;
      best = std::move(next);
    }
    return std::move(*best);
  }

  /// No candidate of the layout takes less: nothing recomputed, or the least that may fit; and
  /// without what more packs together save at most, which is gaps between kernels, what is gathered
  /// for each pass, and gradients that travel under a longer one.
  double least_seconds(Candidate candidate, bool fitting) const {
    for (const auto& [recompute, offload] : modes(candidate)) {
      candidate.recompute = recompute;
      candidate.offload = offload;
      if (!fitting || offload || cost_.at_least(candidate).fits) break;
    }
    const StepTime time = cost_.least_time(candidate);
    double saved = time.of("gaps");
    // More packs together wait more for a pipeline to fill than they hide.
    if (candidate.pp == 1) {
      saved += time.of("gradients");
      if (candidate.shard == ShardKind::full && candidate.reshard) saved += time.of("shards");
    }
    return time.total() - saved * (1 - 1.0 / candidate.passes(recipe_.data.packs));
  }

 private:
  using Mode = std::pair<Recompute, bool>;  // and offload

  static bool better(const Costed& a, const Costed& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.time.total() < b.time.total() : a.memory() < b.memory();
  }
  /// From the least on; what the recipe fixes is not varied.
  std::vector<Mode> modes(const Candidate& candidate) const {
    const std::string& fixed = recipe_.model.recompute;
    std::vector<Mode> all;
    const auto allow = [&](Recompute recompute, bool offload) {
      if (fixed == "auto" || fixed == models::recompute_name(recompute))
        all.emplace_back(recompute, offload);
    };
    for (const Recompute recompute : kind_.recomputes())
      allow(recompute, false);
    if (kind_.can_offload() && candidate.pp == 1)
      for (const Recompute recompute : {Recompute::block_but_attention, Recompute::block})
        allow(recompute, true);
    return all;
  }
  Costed least_recompute(Candidate candidate) const {
    const std::vector<Mode> all = modes(candidate);
    const auto costed = [&](const Mode& mode) {
      candidate.recompute = mode.first;
      candidate.offload = mode.second;
      // Found at once, where the count takes long.
      if (!candidate.offload)
        if (Costed least = cost_.at_least(candidate); !least.fits) return least;
      return cost_.of(candidate);
    };
    Costed least = costed(all.front());
    // No recomputation makes the state less.
    if (least.fits || least.state_alone || all.size() == 1) return least;
    least = costed(all.back());
    if (!least.fits) return least;
    for (std::size_t i = 1; i + 1 < all.size(); ++i)
      if (Costed next = costed(all[i]); next.fits) return next;
    return least;
  }

  const Recipe& recipe_;
  const Kind& kind_;
  const LayoutCost& cost_;
};

bool faster(const Costed& a, const Costed& b) {
  return a.time.total() < b.time.total();
}

/// The first ten again, with all their blocks. One that does not fit with them is none of the best.
void cost_whole(const LayoutCost& cost, Plan& plan) {
  std::size_t whole = 0;
  while (whole < std::min(plan.best.size(), kShownLayouts)) {
    Costed& one = plan.best[whole];
    const double few = one.time.total();
    one = cost.of(one.candidate, true);
    if (one.fits) {
      plan.whole_differs = std::max(plan.whole_differs, std::abs(few / one.time.total() - 1));
      ++whole;
      continue;
    }
    plan.too_big.insert(plan.too_big.begin(), std::move(one));
    plan.best.erase(plan.best.begin() + static_cast<std::ptrdiff_t>(whole));
  }
  std::stable_sort(plan.best.begin(), plan.best.begin() + static_cast<std::ptrdiff_t>(whole),
                   faster);
}

}  // namespace

PackSpread spread_of_packs(const Workload& load) {
  PackSpread spread;
  spread.costs.clear();
  for (const double flops : load.pack_flops)
    spread.costs.push_back(flops / load.fullest_flops);
  return spread;
}

Plan make_plan(const Recipe& recipe, const Workload& load, const PlanRequest& request) {
  const LayoutCost cost(recipe, load.pack, *request.gpu, request.per_node, spread_of_packs(load));
  const OneLayout chooser(recipe, cost);
  Plan plan;
  plan.layouts = enumerate_layouts(recipe, load.shortest, request.gpus, request.per_node);
  // The least first: a layout is looked at closer, and only then costed, while it may be among the
  // ten.
  using Bound = std::tuple<double, std::size_t, bool>;  // seconds, which, whether looked at closer
  std::priority_queue<Bound, std::vector<Bound>, std::greater<>> queue;
  for (std::size_t i = 0; i < plan.layouts.accepted.size(); ++i)
    queue.emplace(chooser.least_seconds(plan.layouts.accepted[i], false), i, false);
  std::vector<double> times;  // of those that fit, ascending
  while (!queue.empty()) {
    check_stop();
    const auto [least, number, closer] = queue.top();
    queue.pop();
    const Candidate& candidate = plan.layouts.accepted[number];
    if (candidate.pp > 1 && !plan.pipeline) plan.pipeline = candidate;
    if (times.size() >= kShownLayouts && least > times[kShownLayouts - 1]) {
      ++plan.slower;
      continue;
    }
    if (!closer) {
      queue.emplace(chooser.least_seconds(candidate, true), number, true);
      continue;
    }
    Costed one = chooser.best(candidate);
    if (one.fits) times.insert(std::ranges::upper_bound(times, one.time.total()), one.time.total());
    (one.fits ? plan.best : plan.too_big).push_back(std::move(one));
  }
  std::ranges::stable_sort(plan.best, faster);
  std::ranges::stable_sort(
      plan.too_big, [](const Costed& a, const Costed& b) { return a.memory() < b.memory(); });
  cost_whole(cost, plan);
  if (plan.pipeline) plan.conditioning = cost.conditioning(*plan.pipeline);
  return plan;
}

}  // namespace vfm::train
