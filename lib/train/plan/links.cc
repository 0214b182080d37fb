// SPDX-License-Identifier: Apache-2.0
#include "train/plan/links.h"

#include <utility>
#include <vector>

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
  const Candidate& c = candidate;
  const int heads = c.cp_kind == nn::CpKind::all_to_all_ring ? c.cp_heads : 1,
            shard = c.shard == ShardKind::none ? 1 : c.dp / c.replicate;
  // From the fastest axis to the slowest, as dist/mesh.h has them.
  const std::pair<Axes, int> sizes[] = {
      {Axes::tp, c.tp},     {Axes::cp_heads, heads},         {Axes::cp_ring, c.cp / heads},
      {Axes::shard, shard}, {Axes::replicate, c.dp / shard}, {Axes::pp, c.pp}};
  const auto wanted = static_cast<unsigned>(axes_of(axes));
  std::vector<int> places = {0};  // of rank 0's group, ascending
  int stride = 1;
  for (const auto& [axis, size] : sizes) {
    if ((wanted & static_cast<unsigned>(axis)) != 0) {
      const std::size_t before = places.size();
      for (int place = 1; place < size; ++place)
        for (std::size_t i = 0; i < before; ++i)
          places.push_back(places[i] + place * stride);
    }
    stride *= size;
  }
  return models::worst_group(places, c.gpus(), per_node);
}

double message_seconds(const models::Gpu& gpu, Operation operation, const GroupOnNodes& group,
                       const SentMessages& sent) {
  return models::link_seconds(gpu, operation, group, sent.calls, sent.bytes);
}

}  // namespace vfm::train
