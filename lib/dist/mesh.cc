// SPDX-License-Identifier: Apache-2.0
#include "dist/mesh.h"

#include <algorithm>

#include "base/log.h"

namespace vfm::dist {

Mesh::Mesh(World& world, const Layout& wanted, std::span<const Axes> more)
    : world_(world), layout_(fit_layout(wanted, world.size())) {
  std::vector<Axes> all = {Axes::cp | Axes::dp, Axes::tp | Axes::cp, Axes::cp | Axes::shard};
  for (const Axis& axis : all_axes()) {
    if (axis.axes == Axes::dp) {
      all.push_back(axis.outer.axes);
      continue;
    }
    all.push_back(axis.axes);
    if (axis.inner_size == nullptr) continue;
    const int inner = axis.inner_size(layout_);
    // A part of cp is a group of its own only if there are two parts.
    if (inner == 1 || inner == layout_.cp) continue;
    all.insert(all.end(), {axis.inner.axes, axis.outer.axes});
  }
  all.insert(all.end(), more.begin(), more.end());
  for (const Axes axes : all)
    if (!groups_.contains(axes))
      groups_[axes] = world.group(axes_name(axes), ranks_along(axes, layout_, world.rank()));
  const std::vector<int> along_dp = ranks_along(Axes::dp, layout_, world.rank());
  dp_place_ = static_cast<int>(std::ranges::find(along_dp, world.rank()) - along_dp.begin());
  if (layout_.pp > 1) upstream_ = world.group(axes_name(Axes::pp), group(Axes::pp).ranks());
}

Group& Mesh::group(Axes axes) const {
  const auto found = groups_.find(axes);
  if (found == groups_.end()) fail("the mesh was made without a group of '{}'", axes_name(axes));
  return *found->second;
}

void Mesh::warn_of_slow_tp() const {
  if (layout_.tp == 1) return;
  const std::vector<std::string> hosts = world_.gather(world_.host());
  if (world_.rank() != 0) return;
  if (const std::string split = split_groups(Axes::tp, layout_, hosts); !split.empty())
    log_warning("{}: each layer then waits for the network; set parallel.tp so that it fits",
                split);
}

}  // namespace vfm::dist
