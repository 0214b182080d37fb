// The parts that one tool completed, as the input of the next tool. `vfm-caption DIR` takes the
// shards that complete parts of vfm-clip wrote into DIR.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::parts {

struct PartInputs {
  int parts = 0;
  /// The manifest.jsonl of each complete part, in order of the parts. io::ManifestReader takes them
  /// as arguments, in place of the folder.
  std::vector<std::string> manifests;
  std::vector<int> missing;  ///< Parts without a marker, in order.

  /// Returns a clause such as "parts 3, 7 and 12 of 'clips' are not complete", or "" if all are.
  std::string message(const std::string& directory) const;
};

/// Returns what parts of `tool`, such as "clip", are complete in the folder, or nullopt if the
/// folder has no parts of the tool. Throws Error for a damaged marker.
std::optional<PartInputs> part_inputs(const std::string& directory, const std::string& tool);

/// Returns the number of the part that has this shard: the XXH3-64 of the file's name, without its
/// folder, modulo `parts`. All tools but vfm-clip share out their inputs so. Thread-safety: any
/// thread.
int part_of_shard(std::string_view path, int parts);

}  // namespace vfm::parts
