// Reads the shards of a folder that vfm-clip made in parts (vfm-clip --part), in the order of the
// list.
//
// The records come from the manifests of complete parts, parts/clip/00003/manifest.jsonl. The
// number of parts decides neither the records nor their order. If several sources of the list have
// the same contents, the first of them counts. A shard all of whose sources are later ones does not
// count. In the record of another shard, "duplicate_hashes" has the hashes of its later sources,
// and the readers of samples pass over their clips. Columns have all samples of all shards, since
// they are made while other parts may still be missing.
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
#include <vector>

#include "base/json_fwd.h"
#include "io/manifest.h"

namespace vfm::shard {

/// Reads the shards of one complete part of vfm-clip, in the order of its manifest.
class ClipsOfPart {
 public:
  ClipsOfPart(const std::string& directory, int part);
  ~ClipsOfPart();
  /// Returns the next record, or nullopt at the end. Its path begins with `directory`. It has no
  /// "columns" (complete_shard(), shard/columns.h). Throws Error if the manifest does not fit the
  /// part's marker.
  std::optional<io::Record> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A source with the contents of an earlier one.
struct DuplicateSource {
  std::string source, first;  ///< Paths of the source, and of the first with its contents.
  std::string hash;           ///< Hash of the contents.
};

/// The sources of a list with the contents of an earlier one.
class LaterSources {
 public:
  /// Temporary files are in `scratch`, or where the system has them.
  explicit LaterSources(const std::string& scratch = {});
  ~LaterSources();
  /// Takes the sources of a shard. Call it for all shards, then settle().
  void add(const io::Record& record);
  void settle();
  /// Does both for all parts of a folder, which must be complete.
  void add_all(const std::string& directory);

  /// Puts "duplicate_hashes" into the record of a shard that has later sources. Returns these.
  std::vector<DuplicateSource> mark(io::Record& record) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns false if all sources of a shard are later ones. Such a shard does not count.
bool counts(const io::Record& record);

class ListedClips {
 public:
  /// `left_out`: next() returns the shards that count. `marked`: it returns all shards.
  enum class Later { left_out, marked };

  /// Returns whether vfm-clip has a list of parts in the folder.
  static bool are_in(const std::string& directory);

  /// Opens the folder. Temporary files are in `scratch`, or where the system has them. Throws Error
  /// if a manifest is damaged.
  explicit ListedClips(const std::string& directory, const std::string& scratch = {},
                       Later later = Later::left_out);
  ~ListedClips();

  /// Sets a function that is called once for each duplicate, in the order of the list.
  void on_duplicate(std::function<void(const DuplicateSource& duplicate)> tell);

  /// Returns the next record, or nullopt at the end. It is as ClipsOfPart gives it, with
  /// "duplicate_hashes" for later sources.
  std::optional<io::Record> next();
  /// Returns the part of vfm-clip that wrote the last record.
  int part() const;
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
