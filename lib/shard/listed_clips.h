// Reads the shards of a folder that vfm-clip made in parts (vfm-clip --part), in the order of the
// list.
//
// The records come from the manifests of complete parts, parts/clip/00003/manifest.jsonl. The
// number of parts decides neither the records nor their order. If several sources of the list have
// the same contents, the first of them counts. A shard all of whose sources are later ones is left
// out. In the record of another shard, "duplicate_hashes" has the hashes of its later sources, and
// the readers of samples pass over their clips.
//
// Memory: about 100 MiB. Temporary files take the size of the manifests.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "io/manifest.h"

namespace vfm::shard {

class ListedClips {
 public:
  /// Returns whether vfm-clip has a list of parts in the folder.
  static bool are_in(const std::string& directory);

  /// Opens the folder. Temporary files are in `scratch`, or where the system has them. Throws Error
  /// if a manifest is damaged.
  explicit ListedClips(const std::string& directory, const std::string& scratch = {});
  ~ListedClips();

  /// A source with the contents of an earlier one.
  struct Duplicate {
    std::string source, first;  ///< Paths of the source, and of the first with its contents.
    std::string hash;           ///< Hash of the contents.
  };
  /// Sets a function that is called once for each duplicate, in the order of the list.
  void on_duplicate(std::function<void(const Duplicate& duplicate)> tell);

  /// Returns the next record, or nullopt at the end. Its path begins with `directory`. It has no
  /// "columns" (complete_shard(), shard/columns.h).
  std::optional<io::Record> next();
  /// Returns a clause that names the parts that are not complete, or "" if all are.
  const std::string& missing() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The sources of a shard whose clips do not count: "duplicate_hashes" of its record.
/// Thread-safety: const members from any thread.
class DuplicateHashes {
 public:
  explicit DuplicateHashes(const Json& record);
  bool empty() const { return hashes_.empty(); }
  /// Returns whether a sample with this JSON is of such a source.
  bool has(const Json& sample) const;
  /// The same for the text of the JSON. Malformed JSON is of no source.
  bool has_text(std::string_view json) const;

 private:
  std::set<std::string> hashes_;
};

}  // namespace vfm::shard
