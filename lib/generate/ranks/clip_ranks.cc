// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_ranks.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "nn/cp_kind.h"
#include "nn/layout_on_mesh.h"

namespace vfm::generate {
namespace {

constexpr std::string_view kHow = "as in --parallel cfg=2,cp=4,tp=2";

/// A clip's ranks keep all matrices together, so groups of them are replicas.
dist::Layout mesh_layout(dist::Layout parallel, int ranks) {
  check_ranks(parallel, ranks);
  parallel.dp = parallel.replicate = ranks / parallel.sharers();
  return parallel;
}

/// The axes of --parallel, from the slowest.
std::vector<dist::Axis> clip_axes() {
  std::vector<dist::Axis> axes;
  for (const dist::Axis& axis : dist::all_axes())
    if (axis.of_clips) axes.insert(axes.begin(), axis);
  return axes;
}

std::string axis_names() {
  std::string names;
  for (const dist::Axis& axis : clip_axes())
    names += std::string(axis.name) + ", ";
  return names;
}

/// Where the size of the axis of this name is, or what `auto` chooses for; null for other names.
int* size_named(dist::Layout& parallel, std::string_view name) {
  if (name == "auto") return &parallel.choose;
  for (const dist::Axis& axis : clip_axes())
    if (axis.name == name) return &(parallel.*axis.size);
  return nullptr;
}

}  // namespace

std::string clip_layout_name(const dist::Layout& parallel) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  for (const dist::Axis& axis : clip_axes()) {
    if (const int size = parallel.*axis.size; size > 1) add(fmt::format("{}={}", axis.name, size));
    if (axis.axes != dist::Axes::cp) continue;
    if (parallel.cp > 1) add(std::string(nn::cp_kind_name(parallel.cp_kind)));
    if (parallel.hybrid) add("hybrid");
  }
  return text;
}

std::string clip_layout_option(const dist::Layout& parallel) {
  std::string text;
  for (const dist::Axis& axis : clip_axes())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, parallel.*axis.size);
  if (parallel.cp > 1) text += fmt::format(",cp_kind={}", nn::cp_kind_name(parallel.cp_kind));
  return parallel.hybrid ? text + ",hybrid" : text;
}

dist::Layout parse_parallel(std::string_view text) {
  dist::Layout parallel;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equal = part.find('=');
    const std::string_view name = part.substr(0, equal);
    const std::string_view value =
        equal == std::string_view::npos ? std::string_view() : part.substr(equal + 1);
    if (part == "auto") {
      parallel.choose = dist::Layout::kAllRanks;
      continue;
    }
    if (part == "hybrid") {
      parallel.hybrid = true;
      continue;
    }
    if (part == "shard") {
      parallel.shard = dist::ShardKind::full;
      continue;
    }
    if (name == "cp_kind") {
      parallel.cp_kind = nn::parse_cp_kind(value);
      continue;
    }
    int* const size = size_named(parallel, name);
    if (!size)
      fail_usage("--parallel has {}cp_kind, hybrid, shard and auto, and not '{}': {}", axis_names(),
                 part, kHow);
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *size);
    if (error != std::errc{} || end != value.data() + value.size() || *size < 1 || *size > 1 << 16)
      fail_usage("--parallel {}: give a number of ranks, {}", part, kHow);
  }
  const bool kind = parallel.cp_kind != nn::CpKind::automatic;
  if (parallel.choose != 0 && (!parallel.alone() || kind || parallel.hybrid))
    fail_usage("--parallel auto chooses the layout: give only the number of ranks, as in auto=8");
  if (parallel.cfg > 2) fail_usage("--parallel cfg={}: cfg must be 1 or 2", parallel.cfg);
  if (parallel.cp == 1 && kind)
    fail_usage("--parallel cp_kind={} needs cp: {}", nn::cp_kind_name(parallel.cp_kind), kHow);
  if (parallel.cp == 1 && parallel.hybrid) fail_usage("--parallel hybrid needs cp: {}", kHow);
  if (parallel.shards_state() && parallel.alone() && parallel.choose == 0)
    fail_usage("--parallel shard needs ranks that share a clip, as in --parallel cp=4,shard");
  return parallel;
}

void check_ranks(const dist::Layout& parallel, int ranks) {
  if (ranks % parallel.sharers() == 0) return;
  fail_usage("--parallel {} shares a clip among {} ranks: start a multiple of that, not {}",
             clip_layout_name(parallel), parallel.sharers(), ranks);
}

ClipRanks::ClipRanks(dist::World& world, const dist::Layout& parallel)
    : mesh_(world, mesh_layout(parallel, world.size())), network_(nn::layout_on_mesh(mesh_)) {
  using enum dist::Axes;
  all_ = make("all", mesh_.layout().sharing() | dp);
  clip_ = make("clip", mesh_.layout().sharing());
  clips_ = make("clips", dp);
  network_.by_sample = true;  // of a clip there are two
  if (clip_->size() > 1) network_.fp8 = clip_.get();
  if (parallel.shards_state() && clip_->size() > 1) share_matrices();
}

std::unique_ptr<dist::Group> ClipRanks::make(std::string_view name, dist::Axes axes) const {
  return world().group(name, dist::ranks_along(axes, mesh_.layout(), world().rank()));
}

// Ranks that make other clips have the same matrices, too, but other numbers of passes.
void ClipRanks::share_matrices() {
  using enum dist::Axes;
  whole_ = make("shard", mesh_.layout().sharing());
  cut_ = make("shard", cp | cfg);
  blocks_ = std::make_unique<nn::BlockShards>(*whole_, *cut_, nullptr, nn::BlockShards::Options{});
  network_.state = {{whole_->rank(), whole_->size()}, {cut_->rank(), cut_->size()}};
  network_.blocks = blocks_.get();
}

}  // namespace vfm::generate
