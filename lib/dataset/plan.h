// What vfm-shard decides between its two passes: duplicates, splits, bins, order, shards.
//
// A pure function of the scanned samples, the options, and the splits in which an earlier run put
// sources: the order of the input does not matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "dataset/known_sources.h"
#include "dataset/scan.h"

namespace vfm::dataset {

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
  KnownSources sources;               ///< in which split each is
};

/// Consumes the items' embeddings. The better of two duplicates has more pixels, else more bytes,
/// else the smaller key. `known` sources keep their split. Throws Stopped.
ShardPlan plan_shards(Scan& scan, const ShardOptions& options, const KnownSources& known,
                      Slots& slots);

/// All that decides a dataset beside its samples.
Json options_json(const ShardOptions& options);
/// {"plan", "options", "shards": [...]}: what DIR/plan.json holds.
Json plan_json(const ShardPlan& plan, const ShardOptions& options);

/// What the JSON of a sample gets in its shard: "split" and "bin", in this order.
void add_place(Json& meta, const PlannedShard& shard);

}  // namespace vfm::dataset
