// All packs of an epoch, and how full and how even packs are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/order.h"
#include "data/packing.h"

namespace vfm::data {

/// Of samples of these lengths, one block after the other.
inline std::vector<Pack> epoch_packs(std::span<const std::int64_t> tokens,
                                     const PackingOptions& options, std::uint64_t seed,
                                     std::uint32_t epoch) {
  const auto lengths = [&](std::span<const std::uint64_t> samples) {
    std::vector<std::int64_t> found;
    found.reserve(samples.size());
    for (const std::uint64_t i : samples)
      found.push_back(tokens[i]);
    return found;
  };
  std::vector<Pack> packs;
  for (std::uint64_t block = 0; block < block_count(tokens.size(), options.packing); ++block)
    for (Pack& pack : block_packs(tokens.size(), lengths, options, seed, epoch, block))
      packs.push_back(std::move(pack));
  return packs;
}

inline PackStats pack_stats(std::span<const std::int64_t> tokens, std::span<const Pack> packs,
                            const PackingOptions& options) {
  PackTally tally(options.tokens);
  for (const Pack& pack : packs)
    tally.add(pack, tokens);
  return tally.stats();
}

}  // namespace vfm::data
