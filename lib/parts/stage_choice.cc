// SPDX-License-Identifier: Apache-2.0
#include "parts/stage_choice.h"

namespace vfm::parts {
namespace {

/// The kind that does a stage fastest.
struct BestKind {
  std::string name;
  double seconds = 0;  // 0 if no kind has done a part
};

BestKind best_kind(const ListStage& stage) {
  BestKind best;
  for (const auto& [name, work] : stage.kinds)
    if (work.seconds > 0 && (best.seconds == 0 || work.seconds < best.seconds))
      best = {name, work.seconds};
  return best;
}

int nodes_of(const std::vector<ListStage>& stages, const std::string& kind) {
  int nodes = 0;
  for (const ListStage& stage : stages)
    if (const auto found = stage.kinds.find(kind); found != stage.kinds.end())
      nodes += found->second.working;
  return nodes;
}

/// What a stage is worth to a node.
struct Worth {
  bool other_first = false;  // only if no other stage waits
  double product = 0;
};

std::optional<Worth> worth_of(const std::vector<ListStage>& stages, const ListStage& stage,
                              const std::string& kind) {
  if (stage.ready == 0) return std::nullopt;
  const auto found = stage.kinds.find(kind);
  const KindWork own = found == stage.kinds.end() ? KindWork{} : found->second;
  const BestKind best = best_kind(stage);
  const double ready = stage.ready;
  if (own.seconds == 0) return Worth{own.working > 0 && best.seconds > 0, ready};
  if (own.seconds > best.seconds)
    if (const int nodes = nodes_of(stages, best.name); nodes > 0)
      if (own.seconds > best.seconds * (1 + ready / nodes)) return std::nullopt;
  return Worth{false, ready * best.seconds / own.seconds};
}

}  // namespace

std::optional<std::size_t> choose_stage(const std::vector<ListStage>& stages,
                                        const std::string& kind) {
  std::optional<std::size_t> chosen;
  Worth most;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::optional<Worth> worth = worth_of(stages, stages[i], kind);
    if (!worth) continue;
    const bool more =
        worth->other_first == most.other_first ? worth->product > most.product : most.other_first;
    if (chosen && !more) continue;
    chosen = i;
    most = *worth;
  }
  return chosen;
}

}  // namespace vfm::parts
