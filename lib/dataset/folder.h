// The dataset of an earlier run of vfm-shard in its folder, and the parts that the next run keeps.
//
// With the same options, and the same sources or some of them, the dataset is continued: right
// shards stay, others are removed before the new plan is written, and sources keep their splits.
// Other options, or no common source, are an error, since the user may have meant another folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dataset/plan.h"

namespace vfm::dataset {

struct EarlierDataset {
  explicit EarlierDataset(const std::string& folder) : sources(folder) {}

  bool there = false;                                       ///< whether it has a plan.json
  std::string hash;                                         ///< of its plan
  std::vector<std::pair<std::string, std::string>> shards;  ///< path below the folder, plan
  /// On temporary files, which exist once the folder does.
  KnownSources sources;  ///< empty with options.force: all sources are split again
};

/// Reads it, before any work. Throws Error{usage} for a dataset of other options, or other
/// contents, unless options.force.
EarlierDataset read_earlier(const ShardOptions& options);

/// Prepares the folder for the plan: removes earlier shards that are not in it, all with
/// options.force, and writes sources.jsonl and plan.json. Throws Error{usage}, without changes, for
/// a dataset of other sources, unless options.force, for unplanned tars, and if the input itself
/// would be removed.
void prepare_folder(const ShardOptions& options, const EarlierDataset& earlier, const Scan& scan,
                    ShardPlan& plan);

}  // namespace vfm::dataset
