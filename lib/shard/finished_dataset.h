// The shards of a dataset that vfm-shard finished, from the files of its folder. No tar is read.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/name_table.h"
#include "io/manifest.h"

namespace vfm::shard {

struct PlannedShard {
  std::string name;  ///< its path as the plan has it: the same wherever the dataset lies
  io::Record record;
};

/// The shards of a folder that vfm-shard wrote, in the order of its plan. Throws Error{usage} if it
/// is not such a folder, or not finished.
std::vector<PlannedShard> planned_shards(const std::string& directory);

/// The same as manifest records.
std::vector<io::Record> dataset_records(const std::string& directory);

/// The same, one at a time, since the records of many shards may exceed a shard's samples. Thread-
/// safety: one thread at a time.
class DatasetRecords {
 public:
  /// Looks at all of them. Throws Error{usage} as planned_shards() does.
  explicit DatasetRecords(const std::string& directory);
  /// Nothing at the end. Throws Error{usage} for one that is gone since.
  std::optional<io::Record> next();

 private:
  std::string directory_;
  NameTable names_;
  std::uint32_t next_ = 0;
};

}  // namespace vfm::shard
