// Where the clips of one source go: its shards, and the json that says they are complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "shard/writer.h"

namespace vfm::jobs {

/// Files are DIR/NAME-00000.tar... with their indexes, DIR/NAME.json when all are there, and until
/// then DIR/.NAME.settings. Thread-safety: one thread at a time; stores of different names are
/// independent.
class ClipStore {
 public:
  /// `settings`: everything that decides the files' bytes, beside the source.
  ClipStore(std::string directory, std::string name, Json settings, std::uint64_t shard_bytes);

  /// DIR/NAME.json, if it stands there with these settings and its shards too.
  std::optional<Json> finished() const;
  /// Begins to write. `keep`: whole shards of a killed run with these settings stay; else what is
  /// there is removed.
  void begin(bool keep);
  /// The end of the kept clip that begins at `pts`, if there is one.
  std::optional<std::int64_t> known_end(std::int64_t pts) const;
  /// The next sample, or, for a kept one, only its key. Throws Error; StaleClips when the kept one
  /// has another key.
  void add(const shard::Sample& sample);
  void add_kept(const std::string& key);
  /// Writes NAME.json: `summary` with the settings, the number of samples and the shards added.
  /// Nothing is written if there is no sample and no error in the summary.
  Json finish(Json summary);

  /// The manifest records of the shards that `finished` lists.
  static std::vector<Json> records(const Json& finished, const std::string& directory);

 private:
  struct Kept {
    std::int64_t end = 0;
    std::string key;
  };
  std::string shard_path(std::size_t number) const;
  std::string json_path() const;
  std::string settings_path() const;
  void keep_shards();
  void remove_from(std::size_t number) const;
  void end_shard();

  std::string directory_, name_;
  Json settings_;
  std::uint64_t shard_bytes_;
  std::map<std::int64_t, Kept> kept_;
  std::vector<Json> shards_;
  std::optional<shard::Writer> writer_;
  std::int64_t samples_ = 0;
};

}  // namespace vfm::jobs
