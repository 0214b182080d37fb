// Which samples vfm-shard drops because it keeps a better one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/plan.h"

namespace vfm::dataset {

struct FoundDuplicates {
  std::vector<Duplicate> list;
  std::vector<bool> dropped;  ///< of each item
  /// Pairs (dropped, kept) of items: their sources show the same.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
};

/// Exact duplicates have the same media bytes; near duplicates, among what is then left, are videos
/// (or images) whose embeddings of one encoder have the cosine of options.duplicate_threshold.
FoundDuplicates find_duplicates(std::vector<Item>& items, const ShardOptions& options,
                                Slots& slots);

}  // namespace vfm::dataset
