// Reads the input of vfm-pack in order: the shards of a manifest, sample by sample. Memory: the
// path and some 60 bytes of each shard so far. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/columns.h"
#include "shard/name_table.h"
#include "shard/sample.h"
#include "shard/shard_input.h"

namespace vfm::pack {

/// A shard of clips, and the name of its latents: DIR/SPLIT/name.tar, for each split of its
/// samples.
struct ClipShard {
  std::string path;               ///< path in the manifest
  std::string split;              ///< record's split, for samples without a split
  bool split_given = false;       ///< false: `split` is the default, "train"
  std::string name;               ///< outputs' name
  std::vector<std::string> tars;  ///< its columns' tars
  HeldJson record;                ///< the manifest's record
};

/// A step of work. Either exactly one member of `begin`, `sample` and `end` is set, or only
/// `errors`.
struct PackWork {
  std::vector<io::Fault> errors;           ///< errors since the previous step
  std::shared_ptr<const ClipShard> shard;  ///< null: only errors
  bool begin = false;                      ///< the shard begins
  std::optional<shard::Sample> sample;
  std::string split;              ///< the sample's split
  std::string refusal;            ///< reason to refuse the sample; empty: it is accepted
  bool end = false;               ///< the shard ends
  std::vector<io::Fault> faults;  ///< with `end`: skipped parts of the shard
  bool any_refused = false;       ///< with `end`: a sample was skipped, maybe because of its size
};

/// Returns the hashes of a shard's tars. If a tar's size fits, the tar's hash is taken from the
/// record, and checked before the shard is read (check_shard_bytes).
Json sources_of(const ClipShard& shard);

class PackFeed {
 public:
  /// Returns the splits of a shard that an earlier run finished. Returns no split if the shard's
  /// samples must be read.
  using Finished = std::function<std::vector<std::string>(const ClipShard&)>;
  /// `finished` is called for each shard. Finished shards also have steps `begin` and `end`.
  PackFeed(const std::vector<std::string>& inputs, const shard::ReadLimits& limits,
           Finished finished);
  ~PackFeed();
  std::optional<PackWork> next();
  const io::InputStreams& streams() const { return input_.streams(); }

 private:
  std::optional<PackWork> next_shard();
  /// Returns the shard of a record. Throws Error, which does not name the path, for unusable
  /// records.
  ClipShard parse(io::Record& record);
  void take_name(const ClipShard& shard, const std::string& split);
  /// Reads the next sample into `work`, with its split. Returns false at the end.
  bool next_sample(PackWork& work);

  shard::ReadLimits limits_;
  Finished finished_;
  std::vector<io::Fault> bad_;  // since the last record
  shard::ShardInput input_;
  shard::NameTable paths_;  // paths of all shards so far
  // Hash of "split/name" -> number, in paths_, of the shard it was made from.
  std::unordered_map<std::uint64_t, std::uint32_t> taken_;
  std::shared_ptr<const ClipShard> shard_;        // the shard being read
  std::unique_ptr<shard::JoinedReader> samples_;  // null if samples need not be read
};

/// Returns the split of a sample: from the sample's json (by vfm-shard), else from its shard's
/// record, else "train". Throws Error if json and record differ, or if the split cannot be a
/// folder's name.
std::string split_of(const shard::Sample& sample, const ClipShard& shard);

}  // namespace vfm::pack
