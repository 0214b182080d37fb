// Finds a dataset that an earlier run of vfm-shard left in the folder, and keeps the shards that
// fit the new plan.
//
// A dataset with the same options and at least one common source is continued: shards that fit the
// new plan stay, all others are removed before the new plan is written, and sources keep their
// splits. Different options, or no common source, are an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dataset/plan.h"

namespace vfm::dataset {

struct EarlierDataset {
  explicit EarlierDataset(const std::string& folder) : sources(folder) {}

  bool there = false;                                       ///< plan.json exists
  std::string hash;                                         ///< the plan's hash
  std::vector<std::pair<std::string, std::string>> shards;  ///< path in the folder, plan
  /// The sources of the earlier dataset, in temporary files, if the folder exists.
  KnownSources sources;  ///< empty with options.force: all sources are split again
};

/// Reads the earlier dataset, before any work. Unless options.force, throws Error{usage} if the
/// folder has a dataset of different options or contents.
EarlierDataset read_earlier(const ShardOptions& options);

/// Prepares the folder: removes earlier shards that are not in `plan` (with options.force all), and
/// writes sources.jsonl and plan.json. Throws Error{usage}, without changes, if there are unplanned
/// tars, if the input itself would be removed, or, without options.force, if the folder has a
/// dataset of different sources.
void prepare_folder(const ShardOptions& options, const EarlierDataset& earlier, const Scan& scan,
                    ShardPlan& plan);

}  // namespace vfm::dataset
