// SPDX-License-Identifier: Apache-2.0
#include "models/dit/stdit_shard.h"

#include <utility>

#include "nn/collectives.h"

namespace vfm::models {
namespace {

// By token of the pack: whose it is.
struct TokenRanks {
  std::vector<int> frame, place, tp;
};

TokenRanks ranks_of(const nn::FramePlan& plan, int tp_size) {
  std::int64_t tokens = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    tokens += plan.tokens_of_frames(rank);
  const std::vector<int> none(static_cast<std::size_t>(tokens), 0);
  TokenRanks ranks{none, none, none};
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const std::int64_t here = plan.tokens_of_frames(rank);
    std::int64_t at = 0;
    int tp = 0;
    for (const ops::RowRange& range : plan.rows(rank))
      for (std::int64_t row = range.begin; row < range.end; ++row, ++at) {
        while (at >= nn::share(here, tp + 1, tp_size))
          ++tp;
        ranks.frame[static_cast<std::size_t>(row)] = rank;
        ranks.tp[static_cast<std::size_t>(row)] = tp;
      }
    for (const std::int64_t row : plan.pixel_rows(rank))
      ranks.place[static_cast<std::size_t>(row)] = rank;
  }
  return ranks;
}

}  // namespace

PixelMove::PixelMove(const nn::FramePlan& plan, const nn::NetworkLayout& layout)
    : to(static_cast<std::size_t>(plan.ranks()), 0),
      from(to),
      tp_rows(static_cast<std::size_t>(layout.tp_size()), 0) {
  const TokenRanks ranks = ranks_of(plan, layout.tp_size());
  // Own tokens by the rank that they go to; and what comes, by place along tp and rank of cp.
  std::vector<std::vector<std::int32_t>> leaving(to.size());
  std::vector<std::vector<std::vector<std::int32_t>>> coming(
      tp_rows.size(), std::vector<std::vector<std::int32_t>>(to.size()));
  std::int32_t own = 0;
  for (std::size_t token = 0; token < ranks.frame.size(); ++token) {
    const auto frame = static_cast<std::size_t>(ranks.frame[token]),
               place = static_cast<std::size_t>(ranks.place[token]),
               tp = static_cast<std::size_t>(ranks.tp[token]);
    if (ranks.frame[token] == layout.cp_rank() && ranks.tp[token] == layout.tp_rank())
      leaving[place].push_back(own++);
    if (ranks.place[token] == layout.cp_rank())
      coming[tp][frame].push_back(static_cast<std::int32_t>(token));
  }
  for (std::size_t rank = 0; rank < to.size(); ++rank) {
    to[rank] = std::ssize(leaving[rank]);
    from[rank] = std::ssize(coming[static_cast<std::size_t>(layout.tp_rank())][rank]);
    sorted.insert(sorted.end(), leaving[rank].begin(), leaving[rank].end());
  }
  std::vector<std::int32_t> arrived(ranks.frame.size(), -1);  // in which row
  std::int32_t next = 0;
  for (std::size_t tp = 0; tp < tp_rows.size(); ++tp)
    for (const std::vector<std::int32_t>& tokens : coming[tp]) {
      tp_rows[tp] += std::ssize(tokens);
      for (const std::int32_t token : tokens)
        arrived[static_cast<std::size_t>(token)] = next++;
    }
  for (const std::int64_t row : plan.pixel_rows(layout.cp_rank())) {
    pixels.push_back(static_cast<std::int32_t>(row));
    order.push_back(arrived[static_cast<std::size_t>(row)]);
  }
}

SpaceTimePacks space_time_packs(const nn::FramePlan& plan, const PixelMove& move,
                                const ops::RotaryAngles& angles, int heads, int head_dim,
                                const nn::NetworkLayout& layout, Device device) {
  SpaceTimePacks packs;
  const auto rank = static_cast<std::size_t>(layout.cp_rank());
  for (std::size_t i = 0; i < plan.grids.size(); ++i) {
    const ops::TokenGrid& g = plan.grids[i];
    packs.frames.query_lengths.insert(packs.frames.query_lengths.end(),
                                      static_cast<std::size_t>(plan.frames[rank][i].count()),
                                      std::int64_t{g.height} * g.width);
    packs.pixels.query_lengths.insert(packs.pixels.query_lengths.end(),
                                      static_cast<std::size_t>(plan.places[rank][i].count()),
                                      g.frames);
  }
  prepare(packs, heads, head_dim, device);
  const ops::RowChoice pixels(move.pixels, angles.cosines.size(0), device);
  packs.pixel_angles = {pixels.take(angles.cosines), pixels.take(angles.sines)};
  return packs;
}

ops::Exchange to_pixels(const PixelMove& move, const nn::NetworkLayout& layout, Device device) {
  ops::Exchange exchange =
      nn::move_rows(*layout.cp, ops::RowOrder(move.sorted, device), move.to, move.from);
  if (layout.tp != nullptr)
    exchange = ops::in_turn(exchange, nn::gather_rows(*layout.tp, move.tp_rows));
  return in_pixel_order(exchange, ops::RowOrder(move.order, device));
}

}  // namespace vfm::models
