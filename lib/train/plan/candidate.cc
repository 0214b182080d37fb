// SPDX-License-Identifier: Apache-2.0
#include "train/plan/candidate.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "models/dit/architecture.h"
#include "train/cost/memory.h"
#include "train/kind.h"
#include "train/plan/stage_cuts.h"
#include "train/recipe/parallel_fields.h"
#include "train/recipe/recipe_field.h"
#include "train/step/parallel.h"

namespace vfm::train {
namespace {

using nn::CpKind;

constexpr int kMostChunks = 4;  // of a stage, more send more than they wait less

std::vector<int> divisors_of(int number) {
  std::vector<int> all;
  for (int i = 1; i <= number; ++i)
    if (number % i == 0) all.push_back(i);
  return all;
}

/// Why the judge refused, in few words: what it says names numbers of the one layout.
std::string rule_of(const std::string& text) {
  for (const auto& [words, rule] :
       {std::pair{"too few for the ranks", "samples with fewer tokens than ranks"},
        {"head", "heads that are not dealt out evenly"}})
    if (text.find(words) != std::string::npos) return rule;
  return "the model's own rule";
}

/// All layouts of so many GPUs, judged.
class Drawing {
 public:
  Drawing(const Recipe& recipe, const data::Entry& shortest, int gpus, int per_node)
      : recipe_(recipe), shortest_(shortest), gpus_(gpus), per_node_(per_node), cuts_(recipe) {}

  Layouts draw() {
    const int most_stages = kind_of(recipe_.model.type).has_stages() ? cuts_.blocks() : 1;
    for (dist::Layout& layout : dist::layouts_of(gpus_)) {
      if (layout.pp > most_stages) continue;
      const int most = layout.pp > 1 ? std::min(kMostChunks, most_stages / layout.pp) : 1;
      for (layout.vpp = 1; layout.vpp <= most; layout.vpp *= 2)
        kinds(layout);
    }
    return std::move(layouts_);
  }

  /// The first rule that refuses it, in few words, or "".
  std::string why_refused(const Candidate& candidate) {
    const std::int64_t tokens = recipe_.data.tokens / candidate.tp / candidate.cp;
    if (candidate.tp * candidate.cp > 1 && tokens < kLeastTokens)
      return fmt::format("fewer than {} tokens of a pack on a rank, not looked at", kLeastTokens);
    try {
      Recipe one = candidate.of(recipe_);
      one.parallel.stages = cuts_.of(candidate.pp, candidate.vpp);
      judge_layout(one, gpus_, per_node_);
      // A run would take it, and have them wait.
      if (idle_data_ranks(one, gpus_) > 0) return "more ranks than packs a step";
      check_share(one, shortest_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      return rule_of(error.what());
    }
    return "";
  }

 private:
  /// Those that differ in what ranks of cp exchange.
  void kinds(Candidate candidate) {
    if (candidate.cp == 1) return shards(candidate);
    const models::NetworkConfig* network = kind_of(recipe_.model.type).network(recipe_.model);
    const bool space_time = network && network->architecture->space_time;
    for (const bool hybrid : {false, true}) {
      if (hybrid && !space_time) continue;
      candidate.hybrid = hybrid;
      for (const CpKind kind : {CpKind::gather, CpKind::all_to_all, CpKind::ring}) {
        candidate.cp_kind = kind;
        candidate.cp_heads = 1;
        shards(candidate);
      }
      candidate.cp_kind = CpKind::all_to_all_ring;
      for (const int heads : divisors_of(candidate.cp)) {
        if (heads == 1 || heads == candidate.cp) continue;
        candidate.cp_heads = heads;
        shards(candidate);
      }
    }
  }

  /// Those that differ in who keeps what of the state.
  void shards(Candidate candidate) {
    judge(candidate);
    const bool alone = candidate.cp * candidate.dp == 1;
    if (alone || kind_of(recipe_.model.type).one_by_one()) return;
    for (const int replicate : replicas(candidate)) {
      candidate.replicate = replicate;
      candidate.reshard = dist::Reshard::automatic;
      candidate.shard = ShardKind::optimizer;
      judge(candidate);
      candidate.shard = ShardKind::full;
      judge(candidate);
      // A stage keeps what it gathered in any case.
      candidate.reshard = dist::Reshard::never;
      if (candidate.pp == 1 && candidate.packs_of_rank(recipe_.data.packs) > 1) judge(candidate);
    }
  }

  /// Groups that keep the state: one, or one for each node or four that such ranks are on.
  std::vector<int> replicas(const Candidate& candidate) const {
    std::vector<int> all = {1};
    for (const int nodes : {1, 4}) {
      const int ranks = nodes * per_node_ / candidate.tp;  // of cp and dp that these nodes have
      if (ranks <= candidate.cp || ranks % candidate.cp != 0) continue;
      const int shard = ranks / candidate.cp;
      if (shard < candidate.dp && candidate.dp % shard == 0) all.push_back(candidate.dp / shard);
    }
    return all;
  }

  void judge(const Candidate& candidate) {
    check_stop();
    ++layouts_.drawn;
    if (std::string why = why_refused(candidate); why.empty())
      layouts_.accepted.push_back(candidate);
    else
      ++layouts_.refused[why];
  }

  const Recipe& recipe_;
  const data::Entry& shortest_;
  const int gpus_, per_node_;
  StageCuts cuts_;
  Layouts layouts_;
};

}  // namespace

Candidate::Candidate(dist::Layout layout, nn::Recompute how)
    : dist::Layout(std::move(layout)), recompute(how) {
  tp_chunks = std::max(1, tp_chunks);
  if (cp_kind == CpKind::automatic) cp_kind = CpKind::gather;
  cp_heads = std::max(1, cp_heads);
  dp = std::max(1, dp);
}

Candidate Candidate::of_pass() const {
  Candidate one = *this;
  one.dp = one.pp = one.vpp = one.replicate = 1;
  one.shard = ShardKind::none;
  one.reshard = dist::Reshard::automatic;
  if (cp == 1) one.cp_kind = nn::CpKind::gather, one.hybrid = false;
  if (one.cp_kind != nn::CpKind::all_to_all_ring) one.cp_heads = 1;
  return one;
}

Recipe Candidate::of(Recipe recipe) const {
  dist::Layout parallel = *this;
  parallel.dp = 0;
  if (tp == 1) parallel.tp_chunks = 0;
  if (cp == 1) parallel.cp_kind = CpKind::automatic, parallel.hybrid = false;
  if (parallel.cp_kind != CpKind::all_to_all_ring) parallel.cp_heads = 0;
  parallel.ahead = may_be_ahead() ? recipe.parallel.ahead : 0;
  parallel.stages.clear();
  parallel.reduce = recipe.parallel.reduce;
  parallel.paying_chunks = recipe.parallel.paying_chunks;
  recipe.parallel = std::move(parallel);
  recipe.model.recompute = nn::recompute_name(recompute);
  recipe.model.offload = offload;
  recipe.data.micro_packs = micro_packs;
  return recipe;
}

Candidate candidate_of(const Recipe& recipe, int ranks, int per_node, nn::Recompute recompute) {
  const std::unique_ptr<dist::World> world = dist::counted_world(0, ranks);
  const Parallel parallel(recipe, *world, std::min(per_node, ranks));
  Candidate candidate(parallel.mesh().layout(), recompute);
  candidate.tp_chunks = candidate.tp > 1 ? recipe.parallel.chunks() : 1;
  candidate.hybrid = parallel.network().hybrid;
  candidate.ahead = 0;
  candidate.stages.clear();
  candidate.reduce = DType::f32;
  candidate.paying_chunks = 1;
  if (!candidate.keeps_gathered()) candidate.reshard = dist::Reshard::automatic;
  candidate.offload = recipe.model.offload;
  candidate.micro_packs = packs_of_rank(recipe, ranks).together;
  return candidate;
}

std::vector<std::string> Candidate::settings(const std::set<std::string>& given) const {
  dist::Layout usual, own = of(Recipe()).parallel;
  FieldList before, after;
  add_parallel_fields(before, usual);
  add_parallel_fields(after, own);
  // What a plan leaves as it is.
  std::set<std::string> left = {"parallel.reduce"};
  if (may_be_ahead()) left.insert("parallel.ahead");
  std::vector<std::string> all;
  for (std::size_t i = 0; i < after.fields.size(); ++i) {
    const Field& field = after.fields[i];
    const bool always = field.key == "parallel.tp" || field.key == "parallel.cp",
               one_chunk = field.key == "parallel.tp_chunks" && tp_chunks == 1;
    const bool differs = !one_chunk && field.get() != before.fields[i].get();
    if (!left.contains(field.key) && (always || differs || given.contains(field.key)))
      all.push_back(field.setting());
  }
  all.push_back(fmt::format("model.recompute={}", nn::recompute_name(recompute)));
  if (offload || given.contains("model.offload"))
    all.push_back(fmt::format("model.offload={}", offload));
  all.push_back(fmt::format("data.micro_packs={}", micro_packs));
  return all;
}

std::string Candidate::layout() const {
  std::string text;
  for (const dist::Axis& axis : dist::all_axes()) {
    const int size = this->*axis.size;
    if (size == 1 && !axis.always_named) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, size);
    if (axis.axes == dist::Axes::cp && cp > 1) {
      text += fmt::format(" {}", nn::cp_kind_name(cp_kind));
      if (cp_kind == CpKind::all_to_all_ring) text += fmt::format(" of {}", cp_heads);
      if (hybrid) text += " hybrid";
    }
    if (axis.axes == dist::Axes::pp) text += fmt::format(" vpp={}", vpp);
  }
  if (shards_state()) text += fmt::format(" shard={}", shard_name(shard));
  if (replicate > 1) text += fmt::format(" replicate={}", replicate);
  return text + (keeps_gathered() ? " kept" : "");
}

std::string why_no_layout(const Recipe& recipe, const data::Entry& shortest,
                          const Candidate& candidate, int per_node) {
  return Drawing(recipe, shortest, candidate.gpus(), per_node).why_refused(candidate);
}

bool is_as_given(const Candidate& candidate, const std::set<std::string>& given,
                 const dist::Layout& wanted) {
  const dist::Layout is = candidate.of(Recipe()).parallel;
  const auto kept = [&](std::string_view key, bool same) {
    return same || !given.contains("parallel." + std::string(key));
  };
  for (const dist::Axis& axis : dist::all_axes())
    if (!kept(axis.name, is.*axis.size == wanted.*axis.size)) return false;
  return kept("cp_kind",
              wanted.cp_kind == CpKind::automatic || is.cp == 1 || is.cp_kind == wanted.cp_kind) &&
         kept("cp_heads", wanted.cp_heads == 0 || is.cp_heads == wanted.cp_heads) &&
         kept("hybrid", is.hybrid == wanted.hybrid) && kept("vpp", is.vpp == wanted.vpp) &&
         kept("shard", is.shard == wanted.shard) &&
         kept("replicate", is.replicate == wanted.replicate) &&
         kept("reshard", wanted.reshard == dist::Reshard::automatic ||
                             candidate.shard != ShardKind::full ||
                             candidate.keeps_gathered() == wanted.keeps_gathered());
}

Layouts enumerate_layouts(const Recipe& recipe, const data::Entry& shortest, int gpus,
                          int per_node) {
  return Drawing(recipe, shortest, gpus, per_node).draw();
}

}  // namespace vfm::train
