// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_ranks.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"

namespace vfm::generate {
namespace {

constexpr std::string_view kHow = "as in --parallel cfg=2,cp=4,tp=2";

dist::Layout mesh_layout(const ClipParallel& parallel, const nn::CpChoice& cp, int ranks) {
  check_ranks(parallel, ranks);
  dist::Layout layout;
  layout.tp = parallel.tp;
  layout.cp = parallel.cp;
  layout.dp = ranks / (parallel.tp * parallel.cp);
  if (cp.kind == nn::CpKind::all_to_all_ring) layout.cp_heads = cp.heads;
  return layout;
}

/// `count` ranks from `first` on, each `step` after the one before.
std::vector<int> some_ranks(int first, int step, int count) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i)
    ranks.push_back(first + i * step);
  return ranks;
}

dist::Group* if_shared(const dist::Mesh& mesh, dist::Axes axis) {
  return mesh.size(axis) > 1 ? &mesh.group(axis) : nullptr;
}

}  // namespace

std::string ClipParallel::name() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (cfg > 1) add(fmt::format("cfg={}", cfg));
  if (cp > 1) add(fmt::format("cp={} {}", cp, cp_kind));
  if (hybrid) add("hybrid");
  if (tp > 1) add(fmt::format("tp={}", tp));
  return text;
}

std::string ClipParallel::option() const {
  std::string text = fmt::format("cfg={},cp={},tp={}", cfg, cp, tp);
  if (cp > 1) text += ",cp_kind=" + cp_kind;
  return hybrid ? text + ",hybrid" : text;
}

ClipParallel parse_parallel(std::string_view text) {
  ClipParallel parallel;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equal = part.find('=');
    const std::string_view name = part.substr(0, equal);
    const std::string_view value =
        equal == std::string_view::npos ? std::string_view() : part.substr(equal + 1);
    if (part == "auto") {
      parallel.choose = ClipParallel::kAllRanks;
      continue;
    }
    if (part == "hybrid" || part == "shard") {
      (part == "shard" ? parallel.shard : parallel.hybrid) = true;
      continue;
    }
    if (name == "cp_kind") {
      if (value != "auto") nn::parse_cp_kind(value);
      parallel.cp_kind = value;
      continue;
    }
    int* const size = name == "cfg"    ? &parallel.cfg
                      : name == "cp"   ? &parallel.cp
                      : name == "tp"   ? &parallel.tp
                      : name == "auto" ? &parallel.choose
                                       : nullptr;
    if (!size)
      fail_usage("--parallel has cfg, cp, tp, cp_kind, hybrid, shard and auto, and not '{}': {}",
                 part, kHow);
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *size);
    if (error != std::errc{} || end != value.data() + value.size() || *size < 1 || *size > 1 << 16)
      fail_usage("--parallel {}: give a number of ranks, {}", part, kHow);
  }
  if (parallel.choose != 0 && (!parallel.alone() || parallel.cp_kind != "auto" || parallel.hybrid))
    fail_usage("--parallel auto chooses the layout: give only the number of ranks, as in auto=8");
  if (parallel.cfg > 2) fail_usage("--parallel cfg={}: cfg must be 1 or 2", parallel.cfg);
  if (parallel.cp == 1 && parallel.cp_kind != "auto")
    fail_usage("--parallel cp_kind={} needs cp: {}", parallel.cp_kind, kHow);
  if (parallel.cp == 1 && parallel.hybrid) fail_usage("--parallel hybrid needs cp: {}", kHow);
  if (parallel.shard && parallel.alone() && parallel.choose == 0)
    fail_usage("--parallel shard needs ranks that share a clip, as in --parallel cp=4,shard");
  return parallel;
}

void check_ranks(const ClipParallel& parallel, int ranks) {
  if (ranks % parallel.ranks() == 0) return;
  fail_usage("--parallel {} shares a clip among {} ranks: start a multiple of that, not {}",
             parallel.name(), parallel.ranks(), ranks);
}

ClipRanks::ClipRanks(dist::World& world, const ClipParallel& parallel, const nn::CpChoice& cp)
    : mesh_(world, mesh_layout(parallel, cp, world.size())) {
  const int together = parallel.ranks(), half = parallel.cp * parallel.tp;
  const int place = world.rank() % together, begin = world.rank() - place;
  all_ = world.group("all", some_ranks(0, 1, world.size()));
  clip_ = world.group("clip", some_ranks(begin, 1, together));
  halves_ = world.group("cfg", some_ranks(begin + place % half, half, parallel.cfg));
  clips_ = world.group("clips", some_ranks(place, together, world.size() / together));
  network_.tp = if_shared(mesh_, dist::Axes::tp);
  network_.cp = if_shared(mesh_, dist::Axes::cp);
  network_.cp_kind = cp.kind;
  network_.hybrid = parallel.hybrid;
  network_.by_sample = true;  // of a clip there are two
  if (clip_->size() > 1) network_.fp8 = clip_.get();
  if (parallel.shard && clip_->size() > 1) share_matrices(parallel);
  if (cp.kind != nn::CpKind::all_to_all_ring) return;
  network_.cp_heads = &mesh_.group(dist::Axes::cp_heads);
  network_.cp_ring = &mesh_.group(dist::Axes::cp_ring);
}

// Ranks that make other clips have the same matrices, too, but other numbers of passes.
void ClipRanks::share_matrices(const ClipParallel& parallel) {
  const std::vector<int>& clip = clip_->ranks();
  const int place = clip_->rank() % parallel.tp, alike = clip_->size() / parallel.tp;
  whole_ = world().group("shard", clip);
  cut_ = world().group("shard", some_ranks(clip.front() + place, parallel.tp, alike));
  blocks_ = std::make_unique<nn::BlockShards>(*whole_, *cut_, nullptr, nn::BlockShards::Options{});
  network_.state = {{whole_->rank(), whole_->size()}, {cut_->rank(), cut_->size()}};
  network_.blocks = blocks_.get();
}

}  // namespace vfm::generate
