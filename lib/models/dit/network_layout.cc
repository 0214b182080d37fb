// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "dist/group.h"
#include "models/dit/network.h"

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
  if (config.type != NetworkType::dit)
    fail_usage("a model of type '{}' trains with parallel.tp=1 parallel.cp=1 alone",
               network_type_name(config.type));
  const int heads = config.num_attention_heads, dealt = deals_heads() ? cp_size() : 1;
  const int ranks = tp_size() * dealt;
  if (heads % ranks == 0) return;
  if (deals_heads() && heads % tp_size() == 0)
    fail_usage("{} attention heads are not dealt out to {} ranks: parallel.cp_kind=gather can be",
               heads, ranks);
  int nearest = std::min(tp_size(), heads);
  while (heads % nearest != 0)
    --nearest;
  fail_usage("{} attention heads are not shared by {} ranks: the nearest is parallel.tp={}", heads,
             tp_size(), nearest);
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

}  // namespace vfm::models
