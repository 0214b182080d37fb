// The folder that vfm-pack writes: options, finished shards, and files about all shards.
//
// Memory: some hundred bytes for each finished shard. Thread-safety: one thread at a time.
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
#include "io/first_names.h"
#include "io/folder_lock.h"
#include "pack/notes.h"
#include "shard/name_table.h"
#include "shard/reader.h"

namespace vfm::pack {

/// The file of LatentTokenizer in the folder of a part (shard/part_output.h).
inline constexpr const char* kTokenizerFile = "tokenizer.json";

/// What latents.json says of the tokenizer.
struct LatentTokenizer {
  HeldJson config;      ///< models::TokenizerConfig::to_json().
  int channels = 0;     ///< Channels of a latent.
  int vocabulary = 0;   ///< Number of codes, or 0 if the tokenizer is continuous.
  HeldJson statistics;  ///< models::LatentScale::to_json(), or null if they must be measured.

  Json to_json() const;
  /// Throws Error for other JSON. `what` names the JSON.
  static LatentTokenizer from_json(const Json& json, const std::string& what);
};

class PackFolder {
 public:
  /// The programs that write a folder. `whole`: one program writes all shards and all files about
  /// them. `part`: this program writes some of the shards, and others write the rest.
  enum class Use { whole, part };

  /// Opens or makes the folder. With Use::whole locks it. If `force` is true, removes vfm-pack's
  /// files. Throws Error if another program has locked the folder. Throws Error{usage} if the
  /// folder has latents with other settings and `force` is false.
  PackFolder(const std::string& directory, const Json& settings, int channels, bool force,
             Use use = Use::whole);
  /// Throws Error{usage} if the folder has latents with other settings. Writes nothing.
  static void check_settings(const std::string& directory, const Json& settings);

  const std::string& directory() const { return directory_; }
  std::string tar_path(const std::string& split, const std::string& name) const;
  /// Returns the notes of each split of a finished shard. If the shard is not finished, or was not
  /// made from exactly `made_from`, returns no notes. Looks first in `own_split`.
  std::map<std::string, ShardNotes> find_finished(const std::string& name,
                                                  const std::string& own_split,
                                                  const Json& made_from,
                                                  const shard::ReadLimits& limits) const;
  /// Removes latents.json and the old `tar`. Call begin_shard() before the latents of `input` are
  /// written to `tar`. Throws Error{usage} if `tar` has latents of another input.
  void begin_shard(const std::string& tar, const std::string& input);
  /// Records that this run keeps or replaces a shard of an earlier run. finish() then removes the
  /// earlier run's other shards.
  void goes_on() { goes_on_ = true; }
  /// Returns true if add() has added the shard.
  bool has(const std::string& split, const std::string& name) const;
  /// Writes the notes of the shard at `tar`, which must be on disk.
  void write_notes(const std::string& tar, const ShardNotes& notes) const;

  /// Adds a shard of this run. Call add() after write_notes().
  void add(const std::string& split, const std::string& name, const TarFacts& facts);
  /// Writes index.jsonl and index.bin of each split, .nv-meta/, README.md and, at the end,
  /// latents.json. Throws Error if the run has no sample, if a shard's notes have changed since
  /// add(), or if shards have text of different encoders. If `keys` is not null, also throws Error
  /// if a key is in `keys`, or in two shards.
  void finish(const LatentTokenizer& tokenizer, io::FirstNames* keys = nullptr);
  std::int64_t without_text() const;
  data::FrameCount frames() const;

 private:
  struct Split {
    shard::NameTable names;
    std::vector<TarFacts> facts;
    std::vector<std::uint32_t> order;  // by name; made by finish()
  };
  struct Totals;

  std::optional<ShardNotes> find_part(const std::string& tar, const Json& made_from,
                                      const shard::ReadLimits& limits) const;
  void remove_all() const;
  void remove_latents_json() const;
  static void remove_indexes(const std::string& folder);
  bool settle_strangers() const;
  void write_for_others(bool alone, bool discrete) const;
  ShardNotes read_notes(const std::string& tar, const TarFacts& facts) const;
  void write_list(const std::string& split, Totals& totals, io::FirstNames* keys) const;
  void write_index(const std::string& split, const Json& info) const;

  std::string directory_;
  std::optional<io::FolderLock> lock_;  // with Use::whole
  HeldJson settings_;
  int channels_;
  bool goes_on_ = false;
  std::map<std::string, Split> splits_;
};

}  // namespace vfm::pack
