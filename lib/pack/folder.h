// The folder that vfm-pack writes: options, finished shards, and files about all shards.
//
// Each finished shard takes some hundred bytes of memory; notes on its samples are read again at
// the end. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "pack/notes.h"
#include "pack/sample.h"
#include "shard/name_table.h"
#include "shard/reader.h"

namespace vfm::pack {

class PackFolder {
 public:
  /// Opens or makes the folder, and locks it. `force`: removes vfm-pack's files from the folder.
  /// Throws Error if another program has locked the folder; Error{usage} if the folder has latents
  /// of options other than `settings` and `force` is false.
  PackFolder(const std::string& directory, const Json& settings, int channels, bool force);

  const std::string& directory() const { return directory_; }
  /// Returns DIR/SPLIT/NAME.tar.
  std::string tar_path(const std::string& split, const std::string& name) const;
  /// Returns the notes of a finished shard made from exactly `made_from`, by split. Returns no
  /// notes if the shard is not finished.
  std::map<std::string, ShardNotes> find_finished(const std::string& name, const Json& made_from,
                                                  const shard::ReadLimits& limits) const;
  /// Call begin_shard() before the latents of `input` are written to `tar`. Removes latents.json
  /// and the old `tar`. Throws Error{usage} if `tar` has latents of an input other than `input`.
  void begin_shard(const std::string& tar, const std::string& input);
  /// Call goes_on() if a shard of an earlier run is also in this run, because both runs then pack
  /// the same dataset.
  void goes_on() { goes_on_ = true; }
  /// Returns true if a shard of this run has this name.
  bool has(const std::string& split, const std::string& name) const;
  /// Writes the notes of the shard at `tar`, which must be on disk.
  void write_notes(const std::string& tar, const ShardNotes& notes) const;

  /// Adds a shard of this run. Call add() after write_notes().
  void add(const std::string& split, const std::string& name, const PartFacts& facts);
  /// Removes shards of the same dataset that are not in this run. Writes index.jsonl and index.bin
  /// of each split, .nv-meta/, README.md and, last, latents.json. Throws Error if there are no
  /// samples, or notes of a shard have changed since add().
  void finish(const models::VideoTokenizer& tokenizer);
  /// Returns the number of samples of this run without text.
  std::int64_t without_text() const;
  /// Returns the counts of frames of this run's clips.
  data::FrameCount frames() const;

 private:
  /// This run's shards in a split, by number.
  struct Split {
    shard::NameTable names;
    std::vector<PartFacts> facts;
    std::vector<std::uint32_t> order;  // by name; made by finish()
  };
  struct Totals;

  std::optional<ShardNotes> find_part(const std::string& tar, const Json& made_from,
                                      const shard::ReadLimits& limits) const;
  void remove_all() const;
  void remove_latents_json() const;
  static void remove_indexes(const std::string& folder);  // of a split
  bool settle_strangers() const;
  void write_for_others(bool alone, bool discrete) const;
  ShardNotes read_notes(const std::string& tar, const PartFacts& facts) const;
  void write_list(const std::string& split, Totals& totals) const;
  void write_index(const std::string& split, const Json& info) const;

  std::string directory_;
  io::File lock_;
  HeldJson settings_;
  int channels_;
  bool goes_on_ = false;
  std::map<std::string, Split> splits_;
};

}  // namespace vfm::pack
