// The folder that vfm-pack writes: options, finished shards, and the files over all of them.
//
// Each finished shard takes some hundred bytes of memory; its notes on its samples are read again
// at the end, shard by shard. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/name_table.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "pack/notes.h"
#include "pack/sample.h"
#include "shard/reader.h"

namespace vfm::pack {

class PackFolder {
 public:
  /// Opens or makes the folder, for this program only. Throws Error if another program writes it,
  /// Error{usage} if it holds latents of other options and
  /// `force` is not given; with `force` removes what vfm-pack wrote there.
  PackFolder(const std::string& directory, const Json& settings, int channels, bool force);

  const std::string& directory() const { return directory_; }
  /// DIR/SPLIT/NAME.tar.
  std::string tar_path(const std::string& split, const std::string& name) const;
  /// The notes of a finished shard made from exactly `made_from`, by split; empty if there is none.
  std::map<std::string, ShardNotes> find_finished(const std::string& name, const Json& made_from,
                                                  const shard::ReadLimits& limits) const;
  /// To be called before the latents of `input` are written, which makes the files over all shards
  /// out of date. Throws Error{usage} if there are latents of another input.
  void begin_shard(const std::string& tar, const std::string& input);
  /// Call it if a shard of an earlier run is also one of this run: both pack the same set.
  void goes_on() { goes_on_ = true; }
  /// Whether a shard of this run has that name.
  bool has(const std::string& split, const std::string& name) const;
  /// Writes the notes of the shard at `tar`, which is durable.
  void write_notes(const std::string& tar, const ShardNotes& notes) const;

  /// Adds a shard of this run, whose notes are written.
  void add(const std::string& split, const std::string& name, const PartFacts& facts);
  /// Removes shards of the same set that are not of this run. Writes index.jsonl and
  /// index.bin of each split, .nv-meta/ and README.md, then latents.json. Throws Error if there are
  /// no samples, or if the notes of a shard have changed since add().
  void finish(const models::VideoTokenizer& tokenizer);
  /// The number of samples of this run without text.
  std::int64_t without_text() const;
  /// The counts of frames of this run's clips.
  data::FrameCount frames() const;

 private:
  /// The shards of this run in a split, by number.
  struct Split {
    NameTable names;
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
