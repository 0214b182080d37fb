// What travels between GPUs of nodes, and how long it takes.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "dist/traffic.h"
#include "models/link_time.h"
#include "train/cost/step_work.h"
#include "train/plan/candidate.h"

namespace vfm::train {

using models::GroupOnNodes;
/// The worst of the groups along the axes of this name (dist::axes_name) on that mesh. Throws Error
/// for no axis.
GroupOnNodes group_on_nodes(std::string_view axes, const Candidate& candidate, int per_node);

/// models::link_seconds().
double message_seconds(const models::Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent);

}  // namespace vfm::train
