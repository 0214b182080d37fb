// What travels between GPUs of nodes, and how long it takes: of the messages of a step, and of
// shards of the state.
// Source: Zhao et al., "PyTorch FSDP" (2023), for what shards send.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "dist/traffic.h"
#include "models/link_time.h"
#include "train/memory.h"
#include "train/plan/candidate.h"
#include "train/step_work.h"

namespace vfm::train {

using models::GroupOnNodes;
/// The groups along the axes of this name (dist::axes_name) on that mesh. Throws Error for no axis.
GroupOnNodes group_on_nodes(std::string_view axes, const Candidate& candidate, int per_node);

/// models::link_seconds().
double message_seconds(const models::Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent);

/// Of shards over dp x cp the seconds that `computing` seconds do not hide.
double shard_seconds(const models::Gpu& gpu, const Candidate& candidate, int per_node,
                     const Recipe& recipe, const MemoryNeed& need, double computing);

/// What a rank holds of `need`, which was counted without stages and shards, with them: as many
/// activations as packs are under way, and its part of the state.
MemoryNeed on_stage(MemoryNeed need, const Candidate& candidate, const Recipe& recipe);

}  // namespace vfm::train
