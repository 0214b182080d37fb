// What an earlier run of vfm-shard left in its folder, and what of it the next one keeps.
//
// The same options and the same sources, or some of them: the dataset is continued. Right shards
// stay, the others are removed before the new plan is written, sources keep their splits. Other
// options, or no source in common: the user may have meant another folder, so it is an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dataset/plan.h"

namespace vfm::dataset {

struct EarlierDataset {
  explicit EarlierDataset(const std::string& folder) : sources(folder) {}

  bool there = false;                                       ///< it has a plan.json
  std::string hash;                                         ///< of its plan
  std::vector<std::pair<std::string, std::string>> shards;  ///< path below the folder, plan
  /// On temporary files, which are there once the folder is.
  KnownSources sources;  ///< empty with options.force: all are split anew
};

/// Reads it, before any work. Throws Error{usage} where a dataset of other options stands, or what
/// is none, unless options.force.
EarlierDataset read_earlier(const ShardOptions& options);

/// Makes the folder ready for the plan: removes the earlier shards that are not in it, all with
/// options.force, and writes sources.jsonl and plan.json. Throws Error{usage}, and has done
/// nothing, for a dataset of other sources, unless options.force, for tars that nobody planned,
/// and where the input itself would be removed.
void prepare_folder(const ShardOptions& options, const EarlierDataset& earlier, const Scan& scan,
                    ShardPlan& plan);

}  // namespace vfm::dataset
