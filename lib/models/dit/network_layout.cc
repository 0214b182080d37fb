// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "dist/group.h"
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
    const std::int64_t each = n / ranks, more = n % ranks;
    const auto before = [&](int r) {  // rows of ranks 0..r-1
      std::int64_t rows = each * r;
      for (int i = 0; i < r; ++i)
        rows += (i - given % ranks + ranks) % ranks < more ? 1 : 0;
      return rows;
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

// A layout that each kind of heads can be dealt out to: `what` of them.
void check_heads(const NetworkLayout& layout, int heads, const char* what) {
  const int tp = layout.tp_size(), all = layout.heads_ranks();
  if (heads % all == 0) return;
  if (heads % tp == 0)
    fail_usage("{} {} are not dealt out to {} ranks: parallel.cp_kind=gather can be", heads, what,
               all);
  int nearest = std::min(tp, heads);
  while (heads % nearest != 0)
    --nearest;
  fail_usage("{} {} are not shared by {} ranks: the nearest is parallel.tp={}", heads, what, tp,
             nearest);
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

void NetworkLayout::check(const NetworkConfig& config) const {
  if (alone()) return;
  if (config.type == NetworkType::stdit && cp_size() > 1 && !deals_heads())
    fail_usage(
        "attention within frames and pixels needs them whole: parallel.cp_kind=all_to_all can be");
  check_heads(*this, config.num_attention_heads, "attention heads");
  check_heads(*this, config.key_value_heads(), "heads of keys and values");
}

TokenShard::TokenShard(std::span<const std::int64_t> lengths, const NetworkLayout& layout,
                       Device device) {
  std::vector<std::int32_t> place(static_cast<std::size_t>(
      std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})));  // of each token
  std::int32_t next = 0;
  for (int rank = 0; rank < layout.cp_size(); ++rank) {
    const std::vector<ops::RowRange> part = cp_part(lengths, rank, layout.cp_size());
    for (const ops::RowRange& range : part)
      for (std::int64_t row = range.begin; row < range.end; ++row)
        place[static_cast<std::size_t>(row)] = next++;
    cp_rows.push_back(ops::row_count(part));
    if (rank == layout.cp_rank()) sequence = part;
  }
  order = ops::RowOrder(place, device);
  const std::int64_t here = ops::row_count(sequence);
  for (int rank = 0; rank < layout.tp_size(); ++rank) {
    const std::int64_t begin = nn::share(here, rank, layout.tp_size()),
                       end = nn::share(here, rank + 1, layout.tp_size());
    tp_rows.push_back(end - begin);
    if (rank == layout.tp_rank()) own = part_of(sequence, begin, end);
  }
  const std::int64_t least = *std::ranges::min_element(cp_rows);
  if (least < layout.tp_size())
    fail("a pack of {} tokens is too short for {} x {} ranks", place.size(), layout.cp_size(),
         layout.tp_size());
}

TokenExchanges::TokenExchanges(const NetworkConfig& config, const NetworkLayout& layout,
                               const TokenShard& shard) {
  if (layout.tp != nullptr) {
    gather = nn::gather_rows(*layout.tp, shard.tp_rows);
    sum = nn::sum_rows(*layout.tp, shard.tp_rows);
  }
  if (layout.cp == nullptr) return;
  const std::int64_t width = config.width() / layout.tp_size();
  const std::int64_t keys_width =
      std::int64_t{config.key_value_heads()} * config.attention_head_dim / layout.tp_size();
  if (layout.deals_heads()) {
    to_heads = nn::rows_to_columns(*layout.cp, shard.cp_rows, {width, keys_width, keys_width},
                                   shard.order);
    to_tokens = nn::columns_to_rows(*layout.cp, shard.cp_rows, {width}, shard.order);
  } else {
    keys = nn::gather_columns(*layout.cp, shard.cp_rows,
                              {width, 2 * keys_width, width + 2 * keys_width}, shard.order);
  }
}

}  // namespace vfm::models
