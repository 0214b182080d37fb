// Where the clips of one source go, and the json that says they are complete.
//
// A run that was killed goes on: clips that are whole are kept. ClipStore is what all formats
// share; make_clip_store() knows them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/atomic_file.h"
#include "shard/sample.h"

namespace vfm::clip {

/// shards: DIR/NAME-00000.tar... with their indexes, and DIR/NAME.json when all are there.
/// files: DIR/KEY.mp4 and DIR/KEY.json, and DIR/NAME.files (shard/file_list.h) when all are there.
enum class ClipFormat { shards, files };

/// Thread-safety: one thread at a time; stores of different names are independent.
class ClipStore {
 public:
  virtual ~ClipStore() = default;

  /// DIR/NAME.json or .files, if it stands there with these settings and all that it names too.
  /// Removes what a run that was killed right after that left.
  std::optional<Json> finished() const;
  /// Keeps other programs from these clips until finish() or the store's end; waits for one that
  /// makes them now, so look again whether they are finished().
  void hold();
  /// Begins to write, when it is held. `keep`: whole clips of a killed run with these settings
  /// stay; else what is there is removed.
  virtual void begin(bool keep) = 0;
  /// The end of the next kept clip, if it begins at `pts`.
  std::optional<std::int64_t> known_end(std::int64_t pts) const;
  /// The next sample, or, for a kept one, only its key. Throws Error; StaleClips when the kept one
  /// has another key.
  void add(const shard::Sample& sample);
  void add_kept(const std::string& key);
  /// Writes DIR/NAME.json or .files, and lets go: `summary` with the settings, the number of
  /// samples and what was written. Nothing is written if there is no sample and no error in the
  /// summary.
  Json finish(Json summary);

  /// The manifest records of what `finished` lists.
  static std::vector<Json> records(const Json& finished, const std::string& directory);

 protected:
  ClipStore(std::string directory, std::string name, Json settings);
  virtual std::string index_path() const = 0;
  /// What the next run needs of one that is killed; it is gone when the index stands.
  virtual std::string notes_path() const = 0;
  /// Whether the files that `found` lists are there.
  virtual bool complete(const Json& found) const = 0;
  virtual void write(const shard::Sample& sample) = 0;
  virtual void keep(const std::string& /*key*/) {}
  virtual void end(Json& summary) = 0;
  void write_index(const Json& summary);

  struct Kept {
    std::int64_t begin = 0, end = 0;  // pts
    std::string key;
  };
  std::string directory_, name_;
  Json settings_;
  std::deque<Kept> kept_;  // in the order that they were written in
  std::int64_t samples_ = 0;

 private:
  std::optional<io::AtomicFile> index_;  // while it is held
};

/// `settings`: everything that decides the files' bytes, beside the source. `shard_bytes`: of a
/// shard.
std::unique_ptr<ClipStore> make_clip_store(ClipFormat format, std::string directory,
                                           std::string name, Json settings,
                                           std::uint64_t shard_bytes);

}  // namespace vfm::clip
