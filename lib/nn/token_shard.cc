// SPDX-License-Identifier: Apache-2.0
#include "nn/token_shard.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "dist/group.h"
#include "nn/collectives.h"

namespace vfm::nn {
namespace {

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

}  // namespace

TokenShard::TokenShard(std::span<const std::int64_t> lengths, const NetworkLayout& layout,
                       Device where, bool causal)
    : TokenShard(even_parts(lengths, layout, causal), layout, where) {}

TokenShard::TokenShard(const FramePlan& plan, const NetworkLayout& layout, Device where)
    : TokenShard(frame_parts(plan), layout, where) {}

TokenShard::TokenShard(const Parts& parts, const NetworkLayout& layout, Device where)
    : device(where) {
  const int ranks = layout.cp_size(),
            in_ring = layout.ring_group() ? layout.ring_group()->size() : 1;
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
    const std::int64_t begin = share(here, rank, layout.tp_size()),
                       end = share(here, rank + 1, layout.tp_size());
    tp_rows.push_back(end - begin);
    if (rank == layout.tp_rank()) own = part_of(sequence, begin, end);
  }
}

TokenExchanges::TokenExchanges(const HeadShape& shape, const NetworkLayout& layout,
                               const TokenShard& shard) {
  if (layout.tp != nullptr) {
    gather = gather_rows(*layout.tp, shard.tp_rows, layout.tp_chunks);
    sum = sum_rows(*layout.tp, shard.tp_rows, layout.tp_chunks);
  }
  if (layout.cp == nullptr) return;
  const std::int64_t width = std::int64_t{shape.heads} * shape.head_dim / layout.tp_size();
  const std::int64_t keys_width = std::int64_t{shape.key_heads} * shape.head_dim / layout.tp_size();
  if (layout.cp_kind == CpKind::gather)
    keys = gather_columns(*layout.cp, shard.cp_rows,
                          {width, 2 * keys_width, width + 2 * keys_width}, shard.order);
  if (dist::Group* group = layout.heads_group()) {
    // Then each has messages of its own, which come where its rows are to be, and nothing is
    // sorted.
    constexpr std::size_t kFew = 4;
    const std::vector<std::int64_t> all{width, keys_width, keys_width};
    const bool few = layout.by_sample && !shard.cp_parts.empty() && shard.cp_parts.size() <= kFew;
    to_heads = few ? rows_to_columns(*group, shard.cp_parts, all)
                   : rows_to_columns(*group, shard.cp_rows, all, shard.order);
    to_tokens = few ? columns_to_rows(*group, shard.cp_parts, {width})
                    : columns_to_rows(*group, shard.cp_rows, {width}, shard.order);
  }
  ring.group = layout.ring_group();
  if (!ring) return;
  for (const std::vector<std::int64_t>& lengths : shard.ring) {
    ops::AttentionPack& pack = ring.packs.emplace_back();
    pack.query_lengths = shard.ring[shard.place];
    pack.key_lengths = lengths;
    pack.heads = shape.heads / layout.heads_ranks();
    pack.key_heads = shape.key_heads / layout.heads_ranks();
    pack.head_dim = shape.head_dim;
    ops::prepare(pack, shard.device);
  }
}

}  // namespace vfm::nn
