// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/parallel_fields.h"

#include <fmt/format.h>

#include "base/json.h"
#include "nn/cp_kind.h"
#include "train/recipe/recipe_field.h"

namespace vfm::train {
namespace {

// In the order of ShardKind.
constexpr std::string_view kShardNames[] = {"none", "optimizer", "full"};

/// What belongs to an axis follows its size.
void add_axis(FieldList& list, const dist::Axis& axis, dist::Layout& p) {
  list.number(axis.name, p.*axis.size, between(1, axis.most)).may_change();
  if (axis.axes == dist::Axes::tp)
    list.number("tp_chunks", p.tp_chunks, between(0, 1024)).may_change();
  if (axis.axes == dist::Axes::cp) {
    list.choice("cp_kind", p.cp_kind, nn::cp_kind_names()).may_change();
    list.number("cp_heads", p.cp_heads, between(0, 1 << 16)).may_change();
    list.flag("hybrid", p.hybrid).may_change();
  }
  if (axis.axes == dist::Axes::pp) {
    list.number("vpp", p.vpp, between(1, 1024)).may_change();
    list.number("ahead", p.ahead, between(0, 8)).may_change();
    list.numbers("stages", p.stages, between(1, 1024), true).may_change();
  }
}

}  // namespace

void add_parallel_fields(FieldList& list, dist::Layout& p) {
  static constexpr std::string_view kTypes[] = {"f32", "bf16"};  // in the order of DType
  static constexpr std::string_view kReshard[] = {"auto", "true", "false"};
  list.section("parallel");
  for (const dist::Axis& axis : dist::all_axes())
    if (axis.most > 0) add_axis(list, axis, p);
  list.choice("reduce", p.reduce, kTypes).may_change();
  list.choice("shard", p.shard, kShardNames).may_change();
  list.number("replicate", p.replicate, between(1, 1 << 16)).may_change();
  list.choice("reshard", p.reshard, kReshard).may_change();
}

std::string_view shard_name(dist::ShardKind kind) {
  return kShardNames[static_cast<std::size_t>(kind)];
}

std::vector<std::string> differing_settings(dist::Layout from, dist::Layout to) {
  FieldList before, after;
  add_parallel_fields(before, from);
  add_parallel_fields(after, to);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < after.fields.size(); ++i)
    if (after.fields[i].get() != before.fields[i].get()) all.push_back(after.fields[i].setting());
  return all;
}

}  // namespace vfm::train
