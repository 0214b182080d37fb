// Reads the shards of a tool's input: manifests, bare paths, datasets of vfm-shard, and folders of
// clips that vfm-clip made in parts.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "shard/listed_clips.h"
#include "shard/part_shards.h"

namespace vfm::shard {

class ShardInput {
 public:
  /// Opens `arguments`, which are inputs of io::ManifestReader or folders. A folder stands for the
  /// shards of its dataset, or for those that complete parts of vfm-clip wrote
  /// (shard/listed_clips.h). These shards come before all other records. Throws Error{usage} for
  /// another folder. `before` names the tools, such as "caption", whose columns the caller reads.
  /// If a tool has parts in a folder, all of them should be complete.
  /// With Later::marked, shards of clips that do not count are there, too.
  ShardInput(const std::vector<std::string>& arguments, io::OnFault on_bad,
             const std::vector<std::string>& before = {},
             ListedClips::Later later = ListedClips::Later::left_out);
  /// Opens the shards of a part of a work. If the part has `clips`, their parts must be complete,
  /// and `arguments`, `before` and `later` are not used.
  ShardInput(const PartShards& part, const std::vector<std::string>& arguments, io::OnFault on_bad,
             const std::vector<std::string>& before = {},
             ListedClips::Later later = ListedClips::Later::left_out);

  /// Returns the next record of any kind, or nullopt at the end. Skips tars that are columns of
  /// other shards.
  std::optional<io::Record> next();
  /// Returns whether the manifests were complete, and all parts of the folders, with those of
  /// `before`.
  io::InputStreams streams() const;

 private:
  using Next = std::function<std::optional<io::Record>()>;
  std::optional<io::Record> next_listed();
  Next open_folder(const std::string& folder, ListedClips::Later later);
  void miss_parts(const std::string& folder, const std::vector<std::string>& tools);

  std::vector<Next> listed_;  // of the folders
  std::size_t next_folder_ = 0;
  std::string missing_;  // parts of the folders
  io::ManifestReader lines_;
  std::optional<PartShards> part_;
};

}  // namespace vfm::shard
