// The shards of a dataset that vfm-shard finished, by what its folder says of them. Nothing is read
// from the tars. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/manifest.h"

namespace vfm::shard {

struct PlannedShard {
  std::string name;  ///< its path as the plan has it: the same wherever the dataset lies
  io::Record record;
};

/// The shards of a folder that vfm-shard wrote, in the order of its plan. Throws Error{usage} if it
/// is none, or not finished.
std::vector<PlannedShard> planned_shards(const std::string& directory);

/// The same as manifest records.
std::vector<io::Record> dataset_records(const std::string& directory);

}  // namespace vfm::shard
