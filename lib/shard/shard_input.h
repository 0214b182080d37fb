// Reads the shards of a tool's input: manifests, bare paths, and folders of vfm-shard.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "shard/finished_dataset.h"

namespace vfm::shard {

class ShardInput {
 public:
  /// Opens `arguments`, which are inputs of io::ManifestReader or folders. A folder stands for the
  /// shards of its dataset. These shards come before all other records. Throws Error{usage} for a
  /// folder without a finished dataset.
  ShardInput(const std::vector<std::string>& arguments, io::OnFault on_bad);

  /// Returns the next record of any kind, or nullopt at the end. Skips tars that are columns of
  /// other shards.
  std::optional<io::Record> next();
  /// Returns whether the manifests were complete.
  const io::InputStreams& streams() const { return lines_.streams(); }

 private:
  std::optional<io::Record> next_listed();

  std::vector<DatasetRecords> listed_;  // datasets of the folders
  std::size_t next_folder_ = 0;
  io::ManifestReader lines_;
};

}  // namespace vfm::shard
