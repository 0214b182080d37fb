// Groups of GPUs that exchange messages, and the time of their messages. Thread-safety: free
// functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "dist/traffic.h"
#include "models/link_time.h"
#include "train/cost/step_work.h"
#include "train/plan/candidate.h"

namespace vfm::train {

using models::GroupOnNodes;
/// The slowest group along the axes of this name (dist::axes_name) in the candidate's mesh. Throws
/// Error if there is no such axis.
GroupOnNodes group_on_nodes(std::string_view axes, const Candidate& candidate, int per_node);

/// models::link_seconds() of these messages.
double message_seconds(const models::Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent);

}  // namespace vfm::train
