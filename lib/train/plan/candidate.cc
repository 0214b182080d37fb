// SPDX-License-Identifier: Apache-2.0
#include "train/plan/candidate.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/stop.h"
#include "models/dit/architecture.h"
#include "train/cost/memory.h"
#include "train/kind.h"
#include "train/plan/stage_cuts.h"
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

std::string_view shard_name(ShardKind shard) {
  constexpr std::string_view kNames[] = {"none", "optimizer", "full"};
  return kNames[static_cast<std::size_t>(shard)];
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
    for (const int tp : divisors_of(gpus_))
      for (const int cp : divisors_of(gpus_ / tp))
        for (const int pp : divisors_of(gpus_ / tp / cp)) {
          if (pp > most_stages) break;
          for (int vpp = 1; vpp <= (pp > 1 ? std::min(kMostChunks, most_stages / pp) : 1); vpp *= 2)
            kinds({.tp = tp, .cp = cp, .dp = gpus_ / tp / cp / pp, .pp = pp, .vpp = vpp});
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
      candidate.reshard = true;
      candidate.shard = ShardKind::optimizer;
      judge(candidate);
      candidate.shard = ShardKind::full;
      judge(candidate);
      // A stage keeps what it gathered in any case.
      candidate.reshard = false;
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

Recipe Candidate::of(Recipe recipe) const {
  ParallelRecipe& parallel = recipe.parallel;
  parallel.tp = tp;
  parallel.tp_chunks = tp > 1 ? tp_chunks : 0;
  parallel.cp = cp;
  parallel.cp_kind = cp > 1 ? nn::cp_kind_name(cp_kind) : "auto";
  parallel.cp_heads = cp > 1 && cp_kind == CpKind::all_to_all_ring ? cp_heads : 0;
  parallel.hybrid = cp > 1 && hybrid;
  parallel.pp = pp;
  parallel.vpp = vpp;
  if (!may_be_ahead()) parallel.ahead = 0;
  parallel.stages.clear();
  parallel.shard = shard_name(shard);
  parallel.replicate = replicate;
  parallel.reshard = reshard ? "auto" : "false";
  recipe.model.recompute = nn::recompute_name(recompute);
  recipe.model.offload = offload;
  recipe.data.micro_packs = micro_packs;
  return recipe;
}

Candidate candidate_of(const Recipe& recipe, int ranks, int per_node, nn::Recompute recompute) {
  const std::unique_ptr<dist::World> world = dist::counted_world(0, ranks);
  const Parallel parallel(recipe, *world, std::min(per_node, ranks));
  const dist::Layout layout = parallel.mesh().layout();
  Candidate candidate{.tp = layout.tp, .cp = layout.cp, .dp = layout.dp};
  candidate.pp = layout.pp;
  if (layout.tp > 1) candidate.tp_chunks = recipe.parallel.chunks();
  candidate.vpp = recipe.parallel.vpp;
  candidate.cp_kind = parallel.network().cp_kind;
  candidate.cp_heads = std::max(1, layout.cp_heads);
  const std::string& shard = recipe.parallel.shard;
  candidate.shard = shard == "full"        ? ShardKind::full
                    : shard == "optimizer" ? ShardKind::optimizer
                                           : ShardKind::none;
  candidate.hybrid = parallel.network().hybrid;
  candidate.replicate = recipe.parallel.replicate;
  candidate.reshard = !recipe.parallel.keeps_gathered();
  candidate.recompute = recompute;
  candidate.offload = recipe.model.offload;
  candidate.micro_packs = packs_of_rank(recipe, ranks).together;
  return candidate;
}

std::vector<std::string> Candidate::settings(const std::set<std::string>& given) const {
  std::vector<std::string> all;
  const auto set = [&](const char* key, bool usual, const auto& value) {
    if (!usual || given.contains(key)) all.push_back(fmt::format("{}={}", key, value));
  };
  const bool both = cp > 1 && cp_kind == CpKind::all_to_all_ring;
  set("parallel.tp", false, tp);
  set("parallel.tp_chunks", tp_chunks == 1, tp_chunks);
  set("parallel.cp", false, cp);
  set("parallel.cp_kind", cp == 1, cp > 1 ? nn::cp_kind_name(cp_kind) : "auto");
  set("parallel.cp_heads", !both, both ? cp_heads : 0);
  set("parallel.hybrid", cp == 1 || !hybrid, cp > 1 && hybrid);
  set("parallel.pp", pp == 1, pp);
  set("parallel.vpp", vpp == 1, vpp);
  if (!may_be_ahead()) set("parallel.ahead", true, 0);
  set("parallel.stages", true, "[]");
  set("parallel.shard", shard == ShardKind::none, shard_name(shard));
  set("parallel.replicate", replicate == 1, replicate);
  set("parallel.reshard", reshard, reshard ? "auto" : "false");
  set("model.recompute", false, nn::recompute_name(recompute));
  set("model.offload", !offload, offload);
  set("data.micro_packs", false, micro_packs);
  return all;
}

std::string Candidate::layout() const {
  std::string text = fmt::format("tp={} cp={}", tp, cp);
  if (cp > 1) text += fmt::format(" {}", nn::cp_kind_name(cp_kind));
  if (cp > 1 && cp_kind == CpKind::all_to_all_ring) text += fmt::format(" of {}", cp_heads);
  if (cp > 1 && hybrid) text += " hybrid";
  text += fmt::format(" dp={}", dp);
  if (pp > 1) text += fmt::format(" pp={} vpp={}", pp, vpp);
  if (shard != ShardKind::none) text += fmt::format(" shard={}", shard_name(shard));
  if (replicate > 1) text += fmt::format(" replicate={}", replicate);
  return text + (reshard ? "" : " kept");
}

std::string why_no_layout(const Recipe& recipe, const data::Entry& shortest,
                          const Candidate& candidate, int per_node) {
  return Drawing(recipe, shortest, candidate.gpus(), per_node).why_refused(candidate);
}

bool is_as_given(const Candidate& candidate, const std::set<std::string>& given,
                 const ParallelRecipe& wanted) {
  const ParallelRecipe is = candidate.of(Recipe()).parallel;
  const auto kept = [&](const char* key, bool same) {
    return same || !given.contains(std::string("parallel.") + key);
  };
  return kept("tp", is.tp == wanted.tp) && kept("cp", is.cp == wanted.cp) &&
         kept("cp_kind", wanted.cp_kind == "auto" || is.cp == 1 || is.cp_kind == wanted.cp_kind) &&
         kept("cp_heads", wanted.cp_heads == 0 || is.cp_heads == wanted.cp_heads) &&
         kept("hybrid", is.hybrid == wanted.hybrid) && kept("pp", is.pp == wanted.pp) &&
         kept("vpp", is.vpp == wanted.vpp) && kept("shard", is.shard == wanted.shard) &&
         kept("replicate", is.replicate == wanted.replicate) &&
         kept("reshard", wanted.reshard == "auto" || candidate.shard != ShardKind::full ||
                             candidate.reshard == (wanted.reshard == "true"));
}

Layouts enumerate_layouts(const Recipe& recipe, const data::Entry& shortest, int gpus,
                          int per_node) {
  return Drawing(recipe, shortest, gpus, per_node).draw();
}

}  // namespace vfm::train
