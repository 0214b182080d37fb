// What vfm-shard decides between its two passes: duplicates, splits, bins, order, shards.
//
// A pure function of the scanned samples and the options: the order of the input does not matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "jobs/shard_scan.h"

namespace vfm::jobs {

/// A sample that is dropped because another one is kept.
struct Duplicate {
  std::string key, keeper;
  std::string kind;  ///< "exact", "near", "repeated" (the same sample read twice)
  double cosine = 1;
  std::string reason;  ///< why the keeper is the better one
};

struct PlannedShard {
  std::string split, bin;
  std::string path;                  ///< relative to the dataset's folder
  std::vector<std::uint32_t> items;  ///< numbers in Scan::items, in order
  std::string plan;                  ///< hash of what will stand in it
};

struct ShardPlan {
  std::vector<Duplicate> duplicates;  ///< by key
  std::vector<PlannedShard> shards;   ///< by split as given, bin and number
  std::string hash;                   ///< of all shards' plans
};

/// Consumes the items' embeddings. The better of two duplicates has more pixels, else more bytes,
/// else the smaller key. Throws Stopped.
ShardPlan plan_shards(Scan& scan, const ShardOptions& options, Slots& slots);

/// {"plan", "shards": [...]}: what DIR/plan.json holds.
Json plan_json(const ShardPlan& plan);

/// What the JSON of a sample gets in its shard: "split" and "bin", in this order.
void add_place(Json& meta, const PlannedShard& shard);

}  // namespace vfm::jobs
