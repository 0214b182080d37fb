// The folder that vfm-pack writes: options, finished shards, and the files over all of them.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/latents.h"
#include "io/error_log.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "pack/pack.h"
#include "pack/sample.h"

namespace vfm::pack {

/// What is known of a finished shard, or of its part of one split: the contents of SPLIT/X.json.
struct ShardNotes {
  std::string input;                ///< the shard that it was made of, as the manifest named it
  Json made_from;                   ///< settings, split, hashes of the tars it was made from
  std::vector<std::string> splits;  ///< of all its parts, in order; its errors are in the first
  std::optional<std::uint64_t> max_member;  ///< the limit, if samples were refused, else nothing
  Json record;                       ///< of the tar; null if none of its samples could be packed
  std::vector<data::Entry> entries;  ///< in the order of the tar
  ChannelSums sums;
  Json text_encoder;              ///< null if no sample has text
  std::int64_t without_text = 0;  ///< samples
  std::vector<io::Fault> errors;
};

class PackFolder {
 public:
  /// Opens or makes the folder, for this program alone. Throws Error if another one writes it,
  /// Error{usage} if it holds latents of other options and
  /// `force` is not given; with `force` removes what vfm-pack wrote there.
  PackFolder(const std::string& directory, const Json& settings, int channels, bool force);

  const std::string& directory() const { return directory_; }
  /// DIR/SPLIT/NAME.tar.
  std::string tar_path(const std::string& split, const std::string& name) const;
  /// The notes of a shard that is finished and made from just this, by split; empty if it is not.
  std::map<std::string, ShardNotes> find_finished(const std::string& name, const Json& made_from,
                                                  const shard::ReadLimits& limits) const;
  /// To be called before the latents of `input` are written: from then on the files over all shards
  /// are out of date. Throws Error{usage} where latents of another input stand.
  void begin_shard(const std::string& tar, const std::string& input);
  /// Call it where a shard of an earlier run is one of this run too: both pack the same set.
  void goes_on() { goes_on_ = true; }
  /// Whether a shard of this run has that name.
  bool has(const std::string& split, const std::string& name) const;
  /// The shard at `tar` is durable.
  void write_notes(const std::string& tar, const ShardNotes& notes) const;

  /// Adds a shard of this run.
  void add(const std::string& split, const std::string& name, ShardNotes notes);
  /// Removes shards of the same set that are not of this run. Writes index.jsonl and
  /// index.bin of each split, .nv-meta/ and README.md, then latents.json. Throws Error if there is
  /// no sample.
  void finish(const models::VideoTokenizer& tokenizer);
  /// Samples of this run that have no text.
  std::int64_t without_text() const;

 private:
  std::optional<ShardNotes> find_part(const std::string& tar, const Json& made_from,
                                      const shard::ReadLimits& limits) const;
  void remove_all() const;
  bool settle_strangers() const;
  void write_for_others(bool alone, bool discrete) const;
  void write_index(const std::string& split, const Json& info) const;

  std::string directory_;
  io::File lock_;
  Json settings_;
  int channels_;
  bool goes_on_ = false;
  /// split -> name -> notes: the order of the index.
  std::map<std::string, std::map<std::string, ShardNotes>> shards_;
};

}  // namespace vfm::pack
