// SPDX-License-Identifier: Apache-2.0
#include "train/plan/links.h"

#include "dist/layout.h"

namespace vfm::train {
GroupOnNodes group_on_nodes(std::string_view axes, const Candidate& candidate, int per_node) {
  return models::worst_group(dist::ranks_along(dist::axes_named(axes), candidate, 0),
                             candidate.gpus(), per_node);
}

double message_seconds(const models::Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent) {
  return models::link_seconds(gpu, operation, group, sent.calls, sent.bytes);
}

}  // namespace vfm::train
