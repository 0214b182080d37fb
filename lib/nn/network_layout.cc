// SPDX-License-Identifier: Apache-2.0
#include "nn/network_layout.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/format.h"
#include "dist/group.h"
#include "dist/layout.h"

namespace vfm::nn {
namespace {

int rank_in(const dist::Group* group) {
  return group == nullptr ? 0 : group->rank();
}

int size_of(const dist::Group* group) {
  return group == nullptr ? 1 : group->size();
}

// A layout that each kind of heads can be dealt out to: `what` are so many.
void check_kind(const NetworkLayout& layout, int heads, const std::string& what) {
  const int tp = layout.tp_size(), all = layout.heads_ranks();
  if (heads % all == 0) return;
  if (heads % tp == 0)
    throw dist::LayoutRefused(
        vfm::format("{} {} not dealt out to {} ranks", what, is_or_are(heads), all),
        ": parallel.cp_kind=gather can be");
  int nearest = std::min(tp, heads);
  while (heads % nearest != 0)
    --nearest;
  throw dist::LayoutRefused(vfm::format("{} {} not shared by {} ranks", what, is_or_are(heads), tp),
                            vfm::format(": the nearest is parallel.tp={}", nearest));
}

}  // namespace

int NetworkLayout::tp_rank() const {
  return rank_in(tp);
}
int NetworkLayout::tp_size() const {
  return size_of(tp);
}
int NetworkLayout::cp_rank() const {
  return rank_in(cp);
}
int NetworkLayout::cp_size() const {
  return size_of(cp);
}
int NetworkLayout::pp_rank() const {
  return rank_in(pp);
}
int NetworkLayout::pp_size() const {
  return size_of(pp);
}

std::vector<BlockRange> NetworkLayout::chunks(int count) const {
  if (pp_size() == 1) return {{0, static_cast<std::size_t>(count)}};
  std::vector<BlockRange> ranges;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t end = begin + static_cast<std::size_t>(stages[i]);
    if (i % static_cast<std::size_t>(pp_size()) == static_cast<std::size_t>(pp_rank()))
      ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

bool NetworkLayout::has_block(int i, int count) const {
  const auto block = static_cast<std::size_t>(i);
  return std::ranges::any_of(chunks(count), [block](const BlockRange& range) {
    return range.begin <= block && block < range.end;
  });
}

dist::Group* NetworkLayout::heads_group() const {
  if (cp_size() > 1 && cp_kind == CpKind::all_to_all_ring) return cp_heads;
  return deals_heads() ? cp : nullptr;
}
dist::Group* NetworkLayout::ring_group() const {
  if (cp_size() > 1 && cp_kind == CpKind::all_to_all_ring) return cp_ring;
  return cp_size() > 1 && cp_kind == CpKind::ring ? cp : nullptr;
}
int NetworkLayout::heads_ranks() const {
  return tp_size() * size_of(heads_group());
}

void NetworkLayout::check(int blocks, const HeadShape& shape) const {
  if (pp_size() > 1 && std::accumulate(stages.begin(), stages.end(), 0) != blocks)
    fail("stages of {} blocks together are not a network of {}",
         std::accumulate(stages.begin(), stages.end(), 0), blocks);
  if (alone()) return;
  if (cp_size() > 1 && cp_kind == CpKind::all_to_all_ring &&
      size_of(cp_heads) * size_of(cp_ring) != cp_size())
    fail("{} ranks of cp are not {} times {}", cp_size(), size_of(cp_heads), size_of(cp_ring));
  if (hybrid && cp_size() == 1) fail("a hybrid of one rank of cp");
  if (hybrid && !shape.space_time)
    fail_usage(
        "parallel.hybrid is for attention in frames and pixels, which this network does not have: "
        "leave it out");
  if (shape.space_time && cp_size() > 1 && !hybrid && cp_kind != CpKind::all_to_all)
    throw dist::LayoutRefused("attention within frames and pixels needs them whole",
                              ": parallel.cp_kind=all_to_all can be, or parallel.hybrid=true");
  check_heads(shape);
}

void NetworkLayout::check_heads(const HeadShape& shape) const {
  check_kind(*this, shape.heads, counted(shape.heads, "attention head"));
  check_kind(*this, shape.key_heads, counted(shape.key_heads, "head") + " of keys and values");
}

}  // namespace vfm::nn
