// The dataset that an earlier run of vfm-shard wrote to the same folder.
//
// If the options and at least one source are those of the earlier dataset, the run continues the
// earlier dataset. Earlier shards that the new plan contains, too, are kept. All other earlier
// shards are removed before the new plan is written. Sources keep their splits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dataset/plan.h"

namespace vfm::dataset {

struct EarlierDataset {
  explicit EarlierDataset(const std::string& folder) : sources(folder) {}

  bool there = false;  ///< Whether plan.json exists.
  std::string hash;
  /// PlannedShard::path and PlannedShard::plan of each shard.
  std::vector<std::pair<std::string, std::string>> shards;
  /// The sources of the earlier dataset, in temporary files. Empty if there is no earlier dataset,
  /// or if options.force is set, because then all sources are split again.
  KnownSources sources;
};

/// Reads the earlier dataset. Without options.force, throws Error{usage} if the dataset has
/// different options or an invalid file.
EarlierDataset read_earlier(const ShardOptions& options);

/// Removes earlier shards that are not in `plan` (all shards if options.force is set), and writes
/// sources.jsonl and plan.json. Throws Error{usage}, and changes nothing, if the input would be
/// removed. Without options.force, also throws Error{usage} if the folder has a dataset of
/// different sources, or if a planned tar exists without a plan.json.
void prepare_folder(const ShardOptions& options, const EarlierDataset& earlier, ShardPlan& plan);

}  // namespace vfm::dataset
