// SPDX-License-Identifier: Apache-2.0
#include "train/plan/state_time.h"

#include <algorithm>

#include "train/plan/links.h"

namespace vfm::train {
namespace {

using dist::Operation;

/// Seconds and messages by what they are for.
struct StateSums {
  double gathered = 0, reduced = 0, replicas = 0, messages = 1;

  void add(const models::Gpu& gpu, int per_node, const Candidate& candidate,
           const PlanMessages& all, double times) {
    for (const auto& [what, sent] : all) {
      if (!is_of_state(what.first)) continue;
      const double seconds =
          times *
          message_seconds(gpu, what.second, group_on_nodes(what.first, candidate, per_node), sent);
      if (what.first == "replicate")
        replicas += seconds;
      else if (what.second == Operation::all_gather)
        gathered += seconds;
      else
        reduced += seconds;
      if (what.second != Operation::all_gather) messages = std::max(messages, sent.calls);
    }
  }
};

/// Of blocks that are gathered: what is gathered for a block travels under the one before, what is
/// reduced of it under the one after in backward.
double blocks_exposed(const Candidate& candidate, const StateSums& of_blocks, int blocks,
                      const Meanwhile& meanwhile) {
  const double passes = meanwhile.passes, count = std::max(1, blocks);
  const double each = meanwhile.computing / passes / count, forward = each / 3,
               backward = each - forward;
  // Kept matrices are gathered in the first forward alone, others twice a pass.
  const double times = candidate.keeps_gathered() ? 1 : 2 * passes;
  const double gather = of_blocks.gathered / times / count,
               reduce = of_blocks.reduced / passes / count;
  const double later = std::max(0.0, count - meanwhile.chunks);  // blocks that follow another
  const double forwards = meanwhile.chunks * gather + later * std::max(0.0, gather - forward);
  const double kept = later * std::max(0.0, reduce - backward),
               again =
                   meanwhile.chunks * gather + later * std::max(0.0, gather + reduce - backward);
  // What the last pass reduces last, nothing hides.
  return (candidate.keeps_gathered() ? forwards + passes * kept : passes * (forwards + again)) +
         reduce;
}

}  // namespace

StateTime state_time(const models::Gpu& gpu, int per_node, const Candidate& candidate,
                     const StageWork& work, const Meanwhile& meanwhile) {
  StateSums all, of_blocks;
  all.add(gpu, per_node, candidate, work.all.messages, 1);
  of_blocks.add(gpu, per_node, candidate, work.of_blocks, 1);
  StateTime time;
  if (candidate.shard == ShardKind::full && candidate.pp > 1) {
    // Once a step: all blocks travel under the first forward, and their sums under the last
    // backward; of each at least one block's is not hidden. What is in no block follows backward.
    const double forward = meanwhile.computing / meanwhile.passes / 3,
                 blocks = std::max(1, work.blocks);
    const auto exposed = [blocks](double travels, double computing) {
      return std::max(travels / blocks, travels - computing);
    };
    time.shards = std::max(0.0, all.gathered - of_blocks.gathered) +
                  std::max(0.0, all.reduced - of_blocks.reduced) +
                  exposed(of_blocks.gathered, forward) + exposed(of_blocks.reduced, 2 * forward);
    time.gradients = all.replicas;
    return time;
  }
  if (candidate.shard == ShardKind::full) {
    // What is in no block follows backward, as do the sums of replicas.
    const double rest = std::max(0.0, all.gathered - of_blocks.gathered) +
                        std::max(0.0, all.reduced - of_blocks.reduced);
    time.shards = rest + blocks_exposed(candidate, of_blocks, work.blocks, meanwhile);
    time.gradients = all.replicas;
    return time;
  }
  const double backward = meanwhile.graphs ? 0 : 2.0 / 3 * meanwhile.computing / meanwhile.passes;
  time.gradients = std::max(all.reduced / all.messages, all.reduced - backward) + all.replicas;
  time.shards = all.gathered;
  return time;
}

}  // namespace vfm::train
