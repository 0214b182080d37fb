// What travels between GPUs of nodes, and how long it takes.
// Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, for the bytes of a ring.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "dist/traffic.h"
#include "models/gpu_table.h"
#include "train/plan/candidate.h"
#include "train/step_work.h"

namespace vfm::train {

/// Who takes part in a message, and how many of these are on one machine.
struct GroupOnNodes {
  int ranks = 1, on_node = 1;
};
/// The groups along the axes of this name (dist::axes_name) on that mesh. Throws Error for no axis.
GroupOnNodes group_on_nodes(std::string_view axes, const Candidate& candidate, int per_node);

/// Seconds of what a rank sends by `operation`: `bytes` in all, in that many `calls`. Rings of a
/// group leave each node once, by the links of all its GPUs there; of an all-to-all each GPU sends
/// to other nodes by its own link; between two ranks the slowest pair counts.
double message_seconds(const models::Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent);

}  // namespace vfm::train
