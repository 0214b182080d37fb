// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_layout.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/format.h"
#include "dist/group.h"
#include "dist/mesh.h"
#include "models/dit/architecture.h"
#include "models/dit/network.h"
#include "nn/collectives.h"

namespace vfm::models {
namespace {

int rank_in(const dist::Group* group) {
  return group == nullptr ? 0 : group->rank();
}

int size_of(const dist::Group* group) {
  return group == nullptr ? 1 : group->size();
}

// What a rank has of each sample: even parts. The first rank of the longer ones goes round, so that
// short samples do not all fall to the same.
std::vector<ops::RowRange> cp_part(std::span<const std::int64_t> lengths, int rank, int ranks) {
  std::vector<ops::RowRange> ranges;
  std::int64_t begin = 0, given = 0;
  for (const std::int64_t n : lengths) {
    const std::int64_t each = n / ranks, more = n % ranks, first = given % ranks;
    // Rows of ranks 0..r-1. One more have the ranks from `first` on, and those at the begin to
    // which that goes round.
    const auto before = [&](std::int64_t r) {
      return each * r + std::clamp(r - first, std::int64_t{0}, more) +
             std::min(r, std::max(std::int64_t{0}, first + more - ranks));
    };
    ranges.push_back({begin + before(rank), begin + before(rank + 1)});
    given += more;
    begin += n;
  }
  return ranges;
}

// Rows begin..end-1 of those that the ranges have together.
std::vector<ops::RowRange> part_of(const std::vector<ops::RowRange>& ranges, std::int64_t begin,
                                   std::int64_t end) {
  std::vector<ops::RowRange> part;
  std::int64_t at = 0;
  for (const ops::RowRange& range : ranges) {
    const std::int64_t first = std::clamp(begin - at, std::int64_t{0}, range.count()),
                       last = std::clamp(end - at, std::int64_t{0}, range.count());
    part.push_back({range.begin + first, range.begin + last});
    at += range.count();
  }
  return part;
}

// Of 2 ranks even parts, the rank's from the beginning and its one from the end.
std::vector<ops::RowRange> causal_part(std::span<const std::int64_t> lengths, int rank, int ranks) {
  const std::vector<ops::RowRange> early = cp_part(lengths, rank, 2 * ranks),
                                   late = cp_part(lengths, 2 * ranks - 1 - rank, 2 * ranks);
  std::vector<ops::RowRange> both;
  for (std::size_t i = 0; i < early.size(); ++i) {
    both.push_back(early[i]);
    both.push_back(late[i]);
  }
  return both;
}

// Of all ranks of cp.
std::vector<std::vector<ops::RowRange>> even_parts(std::span<const std::int64_t> lengths,
                                                   const NetworkLayout& layout, bool causal) {
  const int ranks = layout.cp_size();
  std::vector<std::vector<ops::RowRange>> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(causal ? causal_part(lengths, rank, ranks) : cp_part(lengths, rank, ranks));
    if (ops::row_count(parts.back()) < layout.tp_size())
      fail("a pack of {} tokens is too short for {} x {} ranks",
           std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), ranks,
           layout.tp_size());
  }
  return parts;
}

std::vector<std::vector<ops::RowRange>> frame_parts(const FramePlan& plan) {
  std::vector<std::vector<ops::RowRange>> parts;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    parts.push_back(plan.rows(rank));
  return parts;
}

// counts[i] += rows of range i.
void add_counts(const std::vector<ops::RowRange>& ranges, std::vector<std::int64_t>& counts) {
  counts.resize(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i)
    counts[i] += ranges[i].count();
}

// The rows of each rank, by range; none if the ranges' order is not that of their rows.
std::vector<std::vector<std::int64_t>> counts_by_range(
    std::span<const std::vector<ops::RowRange>> parts) {
  std::vector<std::vector<std::int64_t>> counts;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < parts.front().size(); ++i) {
    std::vector<std::int64_t>& of_range = counts.emplace_back();
    for (const std::vector<ops::RowRange>& part : parts) {
      of_range.push_back(part[i].count());
      if (part[i].count() == 0) continue;
      if (part[i].begin < end) return {};
      end = part[i].end;
    }
  }
  return counts;
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

void NetworkLayout::check(const NetworkConfig& config) const {
  if (pp_size() > 1 && std::accumulate(stages.begin(), stages.end(), 0) != config.num_layers)
    fail("stages of {} blocks together are not a network of {}",
         std::accumulate(stages.begin(), stages.end(), 0), config.num_layers);
  if (alone()) return;
  if (cp_size() > 1 && cp_kind == CpKind::all_to_all_ring &&
      size_of(cp_heads) * size_of(cp_ring) != cp_size())
    fail("{} ranks of cp are not {} times {}", cp_size(), size_of(cp_heads), size_of(cp_ring));
  if (hybrid && cp_size() == 1) fail("a hybrid of one rank of cp");
  if (hybrid && !config.architecture->space_time)
    fail_usage("parallel.hybrid is for attention in frames and pixels: leave it out for a {}",
               config.architecture->name);
  if (config.architecture->space_time && cp_size() > 1 && !hybrid && cp_kind != CpKind::all_to_all)
    throw dist::LayoutRefused("attention within frames and pixels needs them whole",
                              ": parallel.cp_kind=all_to_all can be, or parallel.hybrid=true");
  check_heads(config.num_attention_heads, config.key_value_heads());
}

void NetworkLayout::check_heads(int heads, int key_heads) const {
  check_kind(*this, heads, counted(heads, "attention head"));
  check_kind(*this, key_heads, counted(key_heads, "head") + " of keys and values");
}

TokenShard::TokenShard(std::span<const std::int64_t> lengths, const NetworkLayout& layout,
                       Device where, bool causal)
    : TokenShard(even_parts(lengths, layout, causal), layout, where) {}

TokenShard::TokenShard(const FramePlan& plan, const NetworkLayout& layout, Device where)
    : TokenShard(frame_parts(plan), layout, where) {}

TokenShard::TokenShard(const Parts& parts, const NetworkLayout& layout, Device where)
    : device(where) {
  const int ranks = layout.cp_size(), in_ring = size_of(layout.ring_group());
  const int together = ranks / in_ring;
  const int here_first = layout.cp_rank() / together * together;
  place = static_cast<std::size_t>(layout.cp_rank() / together);
  if (in_ring > 1) ring.assign(static_cast<std::size_t>(in_ring), {});
  std::int64_t tokens = 0;
  for (const std::vector<ops::RowRange>& part : parts)
    tokens += ops::row_count(part);
  std::vector<std::int32_t> places(static_cast<std::size_t>(tokens),
                                   -1);  // of each token that comes here
  std::int32_t next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<ops::RowRange>& part = parts[static_cast<std::size_t>(rank)];
    if (rank == layout.cp_rank()) sequence = part;
    if (in_ring > 1) add_counts(part, ring[static_cast<std::size_t>(rank / together)]);
    if (rank < here_first || rank >= here_first + together) continue;
    for (const ops::RowRange& range : part)
      for (std::int64_t row = range.begin; row < range.end; ++row)
        places[static_cast<std::size_t>(row)] = next++;
    cp_rows.push_back(ops::row_count(part));
  }
  cp_parts = counts_by_range(std::span(parts).subspan(static_cast<std::size_t>(here_first),
                                                      static_cast<std::size_t>(together)));
  std::erase(places, -1);
  order = ops::RowOrder(places, device);
  const std::int64_t here = ops::row_count(sequence);
  for (int rank = 0; rank < layout.tp_size(); ++rank) {
    const std::int64_t begin = nn::share(here, rank, layout.tp_size()),
                       end = nn::share(here, rank + 1, layout.tp_size());
    tp_rows.push_back(end - begin);
    if (rank == layout.tp_rank()) own = part_of(sequence, begin, end);
  }
}

TokenExchanges::TokenExchanges(const NetworkConfig& config, const NetworkLayout& layout,
                               const TokenShard& shard) {
  if (layout.tp != nullptr) {
    gather = nn::gather_rows(*layout.tp, shard.tp_rows, layout.tp_chunks);
    sum = nn::sum_rows(*layout.tp, shard.tp_rows, layout.tp_chunks);
  }
  if (layout.cp == nullptr) return;
  const std::int64_t width = config.width() / layout.tp_size();
  const std::int64_t keys_width =
      std::int64_t{config.key_value_heads()} * config.attention_head_dim / layout.tp_size();
  if (layout.cp_kind == CpKind::gather)
    keys = nn::gather_columns(*layout.cp, shard.cp_rows,
                              {width, 2 * keys_width, width + 2 * keys_width}, shard.order);
  if (dist::Group* group = layout.heads_group()) {
    // Then each has messages of its own, which come where its rows are to be, and nothing is
    // sorted.
    constexpr std::size_t kFew = 4;
    const std::vector<std::int64_t> all{width, keys_width, keys_width};
    const bool few = layout.by_sample && !shard.cp_parts.empty() && shard.cp_parts.size() <= kFew;
    to_heads = few ? nn::rows_to_columns(*group, shard.cp_parts, all)
                   : nn::rows_to_columns(*group, shard.cp_rows, all, shard.order);
    to_tokens = few ? nn::columns_to_rows(*group, shard.cp_parts, {width})
                    : nn::columns_to_rows(*group, shard.cp_rows, {width}, shard.order);
  }
  const int head = config.attention_head_dim;
  low_heads.all = layout.cp;
  for (const ops::RowRange& range : shard.sequence)
    low_heads.own.push_back(range.count());
  low_heads.heads = {width / head, keys_width / head, keys_width / head};
  low_heads.head_dim = head;
  low_heads.group = layout.heads_group();
  low_heads.to_heads = to_heads;
  ring.group = layout.ring_group();
  if (!ring) return;
  for (const std::vector<std::int64_t>& lengths : shard.ring) {
    ops::AttentionPack& pack = ring.packs.emplace_back();
    pack.query_lengths = shard.ring[shard.place];
    pack.key_lengths = lengths;
    pack.heads = config.num_attention_heads / layout.heads_ranks();
    pack.key_heads = config.key_value_heads() / layout.heads_ranks();
    pack.head_dim = config.attention_head_dim;
    ops::prepare(pack, shard.device);
  }
}

}  // namespace vfm::models
