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
#include "train/plan/tp_chunks.h"

namespace vfm::train {
namespace {

using nn::Recompute;

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
      if (candidate.shard == ShardKind::full && !candidate.keeps_gathered())
        saved += time.of("shards");
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
      if (fixed == "auto" || fixed == nn::recompute_name(recompute))
        all.emplace_back(recompute, offload);
    };
    for (const Recompute recompute : kind_.recomputes())
      allow(recompute, false);
    if (kind_.can_offload())
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

/// The first ten again, with all their blocks. Of one that does not fit with them the next best way
/// is looked for. Whether there was any: then what was slower than the ten may be among them.
bool cost_whole(const OneLayout& chooser, const LayoutCost& cost, Plan& plan) {
  bool any = false;
  std::size_t whole = 0;
  while (whole < std::min(plan.best.size(), kShownLayouts)) {
    check_stop();
    Costed& one = plan.best[whole];
    if (!one.whole) {
      const double few = one.time.total();
      one = cost.of(one.candidate, true);
      if (one.fits)
        plan.whole_differs = std::max(plan.whole_differs, std::abs(few / one.time.total() - 1));
    }
    if (one.fits) {
      ++whole;
      continue;
    }
    any = true;
    Costed again = chooser.best(one.candidate);
    plan.best.erase(plan.best.begin() + static_cast<std::ptrdiff_t>(whole));
    if (!again.fits)
      plan.too_big.insert(plan.too_big.begin(), std::move(again));
    else
      plan.best.insert(
          std::ranges::upper_bound(plan.best.begin() + static_cast<std::ptrdiff_t>(whole),
                                   plan.best.end(), again, faster),
          std::move(again));
  }
  std::stable_sort(plan.best.begin(), plan.best.begin() + static_cast<std::ptrdiff_t>(whole),
                   faster);
  return any;
}

/// The best of one layout, with all its blocks.
Costed cost_alone(const OneLayout& chooser, const LayoutCost& cost, const Candidate& candidate) {
  Costed one = chooser.best(candidate);
  while (one.fits && !one.whole) {
    one = cost.of(one.candidate, true);
    if (!one.fits) one = chooser.best(candidate);
  }
  return one;
}

/// The layouts, the least first: one is looked at closer, and only then costed, while it may be
/// among the ten.
class LayoutSearch {
 public:
  LayoutSearch(const OneLayout& chooser, Plan& plan) : chooser_(chooser), plan_(plan) {
    for (std::size_t i = 0; i < plan.layouts.accepted.size(); ++i)
      queue_.emplace(chooser.least_seconds(plan.layouts.accepted[i], false), i, false);
  }

  std::size_t left() const { return queue_.size(); }

  /// Until ten fit and what is left takes longer than they do.
  void go_on() {
    std::vector<double> times;  // of those that fit, ascending
    for (const Costed& one : plan_.best)
      times.push_back(one.time.total());
    std::ranges::sort(times);
    while (!queue_.empty()) {
      check_stop();
      const auto [least, number, closer] = queue_.top();
      if (times.size() >= kShownLayouts && least > times[kShownLayouts - 1]) break;
      queue_.pop();
      const Candidate& candidate = plan_.layouts.accepted[number];
      if (candidate.pp > 1 && !plan_.pipeline) plan_.pipeline = candidate;
      if (!closer) {
        queue_.emplace(chooser_.least_seconds(candidate, true), number, true);
        continue;
      }
      Costed one = chooser_.best(candidate);
      if (one.fits)
        times.insert(std::ranges::upper_bound(times, one.time.total()), one.time.total());
      (one.fits ? plan_.best : plan_.too_big).push_back(std::move(one));
    }
    std::ranges::stable_sort(plan_.best, faster);
  }

  /// The least pipeline, whether it was costed or not.
  void find_pipeline() {
    for (; !plan_.pipeline && !queue_.empty(); queue_.pop())
      if (const Candidate& one = plan_.layouts.accepted[std::get<1>(queue_.top())]; one.pp > 1)
        plan_.pipeline = one;
  }

 private:
  using Bound = std::tuple<double, std::size_t, bool>;  // seconds, which, whether looked at closer

  const OneLayout& chooser_;
  Plan& plan_;
  std::priority_queue<Bound, std::vector<Bound>, std::greater<>> queue_;
};

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
  const std::size_t others = std::erase_if(plan.layouts.accepted, [&](const Candidate& one) {
    return request.given && !is_as_given(one, recipe.given, *request.given);
  });
  if (others > 0)
    plan.layouts.refused["not as the given keys of 'parallel' say"] = static_cast<int>(others);
  for (Candidate& one : plan.layouts.accepted)
    if (one.tp > 1)
      one.tp_chunks = paying_tp_chunks(one.of(recipe), *request.gpu,
                                       std::min(request.per_node, request.gpus));
  LayoutSearch search(chooser, plan);
  do
    search.go_on();
  while (cost_whole(chooser, cost, plan));
  plan.slower = static_cast<int>(search.left());
  std::ranges::stable_sort(
      plan.too_big, [](const Costed& a, const Costed& b) { return a.memory() < b.memory(); });
  const Candidate plain({.dp = request.gpus});
  plan.plain_refused = why_no_layout(recipe, load.shortest, plain, request.per_node);
  plan.plain.candidate = plain;
  if (plan.plain_refused.empty()) plan.plain = cost_alone(chooser, cost, plain);
  search.find_pipeline();
  if (plan.pipeline) plan.conditioning = cost.conditioning(*plan.pipeline);
  return plan;
}

}  // namespace vfm::train
