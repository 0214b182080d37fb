// SPDX-License-Identifier: Apache-2.0
#include "train/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "train/beginning.h"
#include "train/kind.h"
#include "train/run.h"
#include "train/signs.h"

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

 private:
  static bool better(const Costed& a, const Costed& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.time.total() < b.time.total() : a.memory() < b.memory();
  }
  /// What the recipe fixes is not varied.
  bool allowed(Recompute recompute) const {
    const std::string& fixed = recipe_.model.recompute;
    return fixed == "auto" || fixed == models::recompute_name(recompute);
  }
  Costed least_recompute(Candidate candidate) const {
    std::optional<Costed> least;
    const auto attempt = [&](Recompute recompute, bool offload) {
      candidate.recompute = recompute;
      candidate.offload = offload;
      Costed next = cost_.of(candidate);
      if (!least || next.memory() < least->memory()) least = std::move(next);
      // No recomputation makes the state less.
      return least->fits || least->state_alone;
    };
    for (const Recompute recompute : kind_.recomputes())
      if (allowed(recompute) && attempt(recompute, false)) return std::move(*least);
    if (kind_.can_offload())
      for (const Recompute recompute : {Recompute::block_but_attention, Recompute::block})
        if (allowed(recompute) && attempt(recompute, true)) return std::move(*least);
    return std::move(*least);
  }

  const Recipe& recipe_;
  const Kind& kind_;
  const LayoutCost& cost_;
};

/// Whether layouts with more cp need not be looked at: with as much tp and the same exchanges the
/// last two grew slower, and had nothing left to gain, as nothing is recomputed. More ranks to a
/// pack only send more.
class Growth {
 public:
  bool hopeless(const Candidate& next) const {
    const auto found = seen_.find(key(next));
    return found != seen_.end() && found->second.slower >= 2;
  }
  void saw(const Costed& one) {
    Seen& seen = seen_[key(one.candidate)];
    const bool least = one.fits && one.candidate.recompute == Recompute::none;
    const bool slower = least && seen.seconds > 0 && one.time.total() > seen.seconds;
    seen.slower = slower ? seen.slower + 1 : 0;
    seen.seconds = least ? one.time.total() : 0;
  }

 private:
  struct Seen {
    double seconds = 0;
    int slower = 0;
  };
  using Key = std::tuple<int, models::CpKind, int>;
  static Key key(const Candidate& one) { return {one.tp, one.cp_kind, one.cp_heads}; }
  std::map<Key, Seen> seen_;
};

bool faster(const Costed& a, const Costed& b) {
  return a.time.total() < b.time.total();
}

/// What makes it slower than the best: the term that has most more.
std::string why_slower(const Costed& one, const Costed& best) {
  std::string term;
  double most = 0;
  for (const auto& [name, seconds] : one.time.terms)
    if (const double more = seconds - best.time.of(name); more > most) most = more, term = name;
  if (term.empty()) return "as fast";
  return fmt::format("{:.3g} ms more of {}", 1e3 * most, term);
}

Json to_json(const Costed& one, const Workload& load, const PlanRequest& request,
             const std::string& why) {
  Json json = {{"layout", one.candidate.layout()},
               {"settings", one.candidate.settings()},
               {"fits", one.fits},
               {"memory_bytes", static_cast<std::int64_t>(one.memory())},
               {"pinned_bytes", static_cast<std::int64_t>(one.need.pinned)},
               {"why", why}};
  if (!one.fits) return json;
  const double seconds = one.time.total();
  Json terms = Json::object();
  for (const auto& [name, of_it] : one.time.terms)
    terms[name] = of_it;
  const double gpus = request.gpus;
  json["seconds"] = seconds;
  json["tokens_per_second"] = load.tokens_a_step / seconds;
  json["mfu"] = load.flops_a_step / seconds / gpus / request.gpu->peak;
  json["terms"] = std::move(terms);
  json["signs"] = Json::array();
  for (const Sign& sign : signs_of(signs_of_plan(json, request.gpu->usable())))
    json["signs"].push_back(sign.words);
  return json;
}

}  // namespace

Plan make_plan(const Recipe& recipe, const Workload& load, const PlanRequest& request) {
  PackSpread spread;
  spread.costs.clear();
  for (const double flops : load.pack_flops)
    spread.costs.push_back(flops / load.fullest_flops);
  const LayoutCost cost(recipe, load.pack, *request.gpu, request.per_node, std::move(spread));
  const OneLayout chooser(recipe, cost);
  Plan plan;
  plan.layouts = enumerate_layouts(recipe, load.shortest, request.gpus, request.per_node);
  Growth growth;
  for (const Candidate& candidate : plan.layouts.accepted) {
    if (growth.hopeless(candidate)) {
      ++plan.slower;
      continue;
    }
    Costed one = chooser.best(candidate);
    growth.saw(one);
    (one.fits ? plan.best : plan.too_big).push_back(std::move(one));
  }
  std::ranges::stable_sort(plan.best, faster);
  std::ranges::stable_sort(
      plan.too_big, [](const Costed& a, const Costed& b) { return a.memory() < b.memory(); });
  const std::size_t shown = std::min(plan.best.size(), kShownLayouts);
  for (std::size_t i = 0; i < shown; ++i) {
    const double few = plan.best[i].time.total();
    plan.best[i] = cost.of(plan.best[i].candidate, true);
    plan.whole_differs =
        std::max(plan.whole_differs, std::abs(few / plan.best[i].time.total() - 1));
  }
  // One that does not fit with all its blocks is none of the best.
  for (std::size_t i = shown; i-- > 0;)
    if (!plan.best[i].fits) {
      plan.too_big.insert(plan.too_big.begin(), plan.best[i]);
      plan.best.erase(plan.best.begin() + static_cast<std::ptrdiff_t>(i));
    }
  std::stable_sort(
      plan.best.begin(),
      plan.best.begin() + static_cast<std::ptrdiff_t>(std::min(shown, plan.best.size())), faster);
  return plan;
}

Json plan_training(const RunOptions& options, const PlanRequest& request) {
  Recipe recipe = options.recipe;
  const std::string reduce = recipe.parallel.reduce;
  recipe.parallel = {};
  recipe.parallel.reduce = reduce;
  const Kind& kind = kind_of(recipe.model.type);
  check_run(options, recipe);
  Workload load;
  if (!options.data.empty() || !options.synthetic.empty()) {
    const std::unique_ptr<Dataset> set = kind.open(options, "train");
    set->fit(recipe);
    load = measure(recipe, *set);
  } else {
    kind.fit_without_data(recipe);
    load = assume(recipe);
  }
  const Plan plan = make_plan(recipe, load, request);
  Json refused = Json::object(), best = Json::array(), too_big = Json::array();
  for (const auto& [why, count] : plan.layouts.refused)
    refused[why] = count;
  for (std::size_t i = 0; i < std::min(plan.best.size(), kShownLayouts); ++i)
    best.push_back(to_json(plan.best[i], load, request,
                           i == 0 ? "the fastest" : why_slower(plan.best[i], plan.best[0])));
  for (std::size_t i = 0; i < std::min<std::size_t>(plan.too_big.size(), 3); ++i)
    too_big.push_back(
        to_json(plan.too_big[i], load, request,
                fmt::format("{} of memory{}, {} are usable", format_bytes(plan.too_big[i].memory()),
                            plan.too_big[i].state_alone ? " without any activation" : "",
                            format_bytes(request.gpu->usable()))));
  return {{"kind", "plan"},
          {"data", load.source},
          {"gpu", request.gpu->title},
          {"gpus", request.gpus},
          {"per_node", request.per_node},
          {"packs", recipe.data.packs},
          {"tokens_per_step", load.tokens_a_step},
          {"usable_bytes", static_cast<std::int64_t>(request.gpu->usable())},
          {"layouts",
           {{"drawn", plan.layouts.drawn},
            {"refused", std::move(refused)},
            {"slower", plan.slower},
            {"too_big", plan.too_big.size()},
            {"fit", plan.best.size()}}},
          {"whole_differs", plan.whole_differs},
          {"best", std::move(best)},
          {"too_big", std::move(too_big)}};
}

std::string plan_words(const Json& plan) {
  const auto number = [](const Json& value) { return value.get<double>(); };
  const Json& layouts = plan["layouts"];
  std::string text = fmt::format(
      "{:<22} {}\n{:<22} {} {}, {} on a node\n{:<22} {:.0f} in {} packs\n"
      "{:<22} {}, of them {} fit, {} are too big",
      "data", plan["data"].get<std::string>(), "for", plan["gpus"].dump(),
      plan["gpu"].get<std::string>(), plan["per_node"].dump(), "tokens per step",
      number(plan["tokens_per_step"]), plan["packs"].dump(), "layouts", layouts["drawn"].dump(),
      layouts["fit"].dump(), layouts["too_big"].dump());
  for (const auto& [why, count] : layouts["refused"].items())
    text += fmt::format(", {}: {}", why, count.dump());
  if (layouts["slower"] != 0)
    text +=
        fmt::format(", slower with less cp already, not looked at: {}", layouts["slower"].dump());
  text += "\npredicted, not measured\n";
  const auto lines = [&](const Json& list) {
    for (const Json& one : list) {
      text += fmt::format("  {:<30} ", one["layout"].get<std::string>());
      if (one["fits"].get<bool>())
        text += fmt::format("{:.4g} s, {} tokens/s, {:.1f} % MFU, {}, ", number(one["seconds"]),
                            format_count(number(one["tokens_per_second"])),
                            100 * number(one["mfu"]), format_bytes(number(one["memory_bytes"])));
      text += one["why"].get<std::string>() + "\n";
    }
  };
  lines(plan["best"]);
  if (plan["best"].empty()) {
    text += "no layout fits; the smallest:\n";
    lines(plan["too_big"]);
    return text;
  }
  const Json& best = plan["best"][0];
  text += "the time of the first\n";
  for (const auto& [term, seconds] : best["terms"].items())
    text += fmt::format("  {:<20} {:.4g} ms, {:.1f} %\n", term, 1e3 * number(seconds),
                        100 * number(seconds) / number(best["seconds"]));
  for (const Json& sign : best["signs"])
    text += fmt::format("  note: {}\n", sign.get<std::string>());
  text += "vfm-train RECIPE";
  for (const Json& setting : best["settings"])
    text += " " + setting.get<std::string>();
  return text + "\n";
}

}  // namespace vfm::train
