// The shards in a tool's input: manifests, bare paths, and folders of vfm-shard. Thread-safety: one
// thread at a time.
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
  /// `arguments` are those of io::ManifestReader; a folder means the shards of its dataset, which
  /// come first. Throws Error{usage} for a folder without a finished dataset.
  ShardInput(const std::vector<std::string>& arguments, io::OnFault on_bad);

  /// The next record of any kind, or nothing at the end. Shards that are columns of others, as
  /// `tool clips/*.tar` names them, are passed over.
  std::optional<io::Record> next();
  /// The streams that began and ended in the manifests.
  const io::InputStreams& streams() const { return lines_.streams(); }

 private:
  std::optional<io::Record> next_listed();

  std::vector<DatasetRecords> listed_;  // of the folders
  std::size_t next_folder_ = 0;
  io::ManifestReader lines_;
};

}  // namespace vfm::shard
