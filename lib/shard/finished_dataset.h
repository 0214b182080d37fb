// Lists the shards of a finished dataset of vfm-shard without reading tars.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "shard/name_table.h"

namespace vfm::shard {

struct FinishedShard {
  std::string name;  ///< Path of the shard in the plan, independent of the dataset's folder.
  io::Record record;
};

/// Returns the paths of planned_shards() within the folder, without reading what is known of each.
std::vector<std::string> planned_names(const std::string& directory);
/// Returns the shards of a folder that vfm-shard wrote, in the order of its plan. Throws
/// Error{usage} for any other folder, and for an unfinished dataset.
std::vector<FinishedShard> planned_shards(const std::string& directory);

std::vector<io::Record> dataset_records(const std::string& directory);

/// A reader of the records of planned_shards() that holds one record at a time.
/// Thread-safety: one thread at a time.
class DatasetRecords {
 public:
  /// Checks all shards. Throws Error{usage} as planned_shards() does.
  explicit DatasetRecords(const std::string& directory);
  /// Returns the next record, or nullopt at the end. Throws Error{usage} if the record's shard is
  /// missing.
  std::optional<io::Record> next();

 private:
  std::string directory_;
  NameTable names_;
  std::uint32_t next_ = 0;
};

}  // namespace vfm::shard
