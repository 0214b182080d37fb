// SPDX-License-Identifier: Apache-2.0
#include "train/plan/links.h"

#include <algorithm>

#include "base/error.h"
#include "dist/mesh.h"

namespace vfm::train {
namespace {

using dist::Axes;
using dist::Operation;

Axes axes_of(std::string_view name) {
  constexpr Axes kAll[] = {Axes::tp, Axes::cp,    Axes::cp_heads,  Axes::cp_ring,
                           Axes::dp, Axes::shard, Axes::replicate, Axes::pp};
  unsigned axes = 0;
  while (!name.empty()) {
    const std::string_view one = name.substr(0, name.find('+'));
    name.remove_prefix(std::min(name.size(), one.size() + 1));
    bool known = false;
    for (const Axes axis : kAll)
      if (dist::axes_name(axis) == one) axes |= static_cast<unsigned>(axis), known = true;
    if (!known) fail("no axis '{}'", one);
  }
  return static_cast<Axes>(axes);
}

}  // namespace

GroupOnNodes group_on_nodes(std::string_view axes, const Candidate& candidate, int per_node) {
  dist::Layout layout;
  layout.tp = candidate.tp, layout.cp = candidate.cp, layout.dp = candidate.dp;
  layout.pp = candidate.pp;
  if (candidate.cp_kind == models::CpKind::all_to_all_ring) layout.cp_heads = candidate.cp_heads;
  GroupOnNodes group{0, 0};
  for (const int rank : dist::ranks_along(axes_of(axes), layout, 0)) {
    ++group.ranks;
    if (rank < per_node) ++group.on_node;
  }
  return group;
}

double message_seconds(const models::Gpu& gpu, Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent) {
  return models::link_seconds(gpu, operation, group, sent.calls, sent.bytes);
}

double shard_seconds(const models::Gpu& gpu, const Candidate& candidate, int per_node,
                     const Recipe& recipe, const MemoryNeed& need, double computing) {
  const GroupOnNodes group = group_on_nodes("cp+dp", candidate, per_node);
  const double ranks = group.ranks;
  if (ranks <= 1) return 0;
  const bool full = candidate.shard == ShardKind::full;
  // Of what is trained, which has gradients of f32: of full shards `need` has a part.
  const double elements = need.gradients / 4 * (full ? ranks : 1);
  const double weights = elements * static_cast<double>(dtype_size(recipe.compute())),
               gradients =
                   elements * static_cast<double>(dtype_size(recipe.parallel.reduce_type()));
  const double passes = std::max(
      1.0, static_cast<double>(candidate.packs_of_rank(recipe.data.packs)) / candidate.micro_packs);
  // A stage keeps what it gathered between microbatches.
  const double gathers = full && candidate.pp == 1 ? 2 * passes : 1, sums = full ? passes : 1;
  const double part = (ranks - 1) / ranks;
  constexpr double kBlocks = 32;  // about as many messages
  const SentMessages gathered{gathers * kBlocks, gathers * part * weights},
      reduced{sums * kBlocks, sums * part * gradients};
  const double seconds = message_seconds(gpu, Operation::all_gather, group, gathered) +
                         message_seconds(gpu, Operation::reduce_scatter, group, reduced);
  const double beside = full ? computing : 2.0 / 3 * computing / passes;
  return std::max(seconds / kBlocks / gathers, seconds - beside);
}

MemoryNeed on_stage(MemoryNeed need, const Candidate& candidate, const Recipe& recipe) {
  if (candidate.pp > 1) {
    const int passes =
        std::max(1, candidate.packs_of_rank(recipe.data.packs) / candidate.micro_packs);
    const double under_way =
        candidate.vpp == 1
            ? std::min(passes, candidate.pp)
            : std::min(passes * candidate.vpp,
                       2 * (candidate.pp - 1) + (candidate.vpp - 1) * candidate.pp + 1) /
                  static_cast<double>(candidate.vpp);
    need.activations *= under_way;
  }
  if (candidate.shard == ShardKind::none) return need;
  const double parts = candidate.dp * candidate.cp;
  const bool full = candidate.shard == ShardKind::full,
             split = recipe.optimizer.moment_type() != DType::f32;
  need.moments /= parts;
  need.average /= parts;
  if (full) need.gradients /= parts;
  // Of split masters the low half is state; of f32 the weights stay as they are.
  if (full)
    need.weights /= parts;
  else if (split)
    need.weights *= 0.5 + 0.5 / parts;
  return need;
}

}  // namespace vfm::train
