// The work of vfm-pack, in input order: the shards of the manifest, sample by sample. For each
// shard so far its path and some 60 bytes stay in memory. Thread-safety: one thread at a time.
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
#include "base/name_table.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/columns.h"
#include "shard/sample.h"
#include "shard/shard_input.h"

namespace vfm::pack {

/// A shard of clips, and the place of its latents: DIR/SPLIT/name, a tar for each split of its
/// samples.
struct ClipShard {
  std::string path;               ///< as the manifest names it
  std::string split;              ///< the record's; for samples without their own
  bool split_given = false;       ///< else it is "train" by default
  std::string name;               ///< of the outputs
  std::vector<std::string> tars;  ///< its columns
  HeldJson record;                ///< of the manifest
};

/// One step of work: one of begin, sample and end is set, or only errors.
struct PackWork {
  std::vector<io::Fault> errors;           ///< met on the way here
  std::shared_ptr<const ClipShard> shard;  ///< null: only errors
  bool begin = false;                      ///< the shard begins
  std::optional<shard::Sample> sample;
  std::string split;              ///< of the sample
  std::string refusal;            ///< why the sample is refused; empty: it is not
  bool end = false;               ///< the shard ends
  std::vector<io::Fault> faults;  ///< at the end: skipped parts
  bool any_refused = false;       ///< at the end: a sample was skipped, perhaps for its size
};

/// Hashes of a shard's tars. The record's hash of its tar is taken if the size fits; it is checked
/// before the shard is read (check_shard_bytes).
Json sources_of(const ClipShard& shard);

class PackFeed {
 public:
  /// The splits of a shard of an earlier run; none: its samples must be read.
  using Finished = std::function<std::vector<std::string>(const ClipShard&)>;
  /// `finished` is called for each shard; its begin and end come anyway.
  PackFeed(const std::vector<std::string>& inputs, const shard::ReadLimits& limits,
           Finished finished);
  ~PackFeed();
  std::optional<PackWork> next();
  const io::InputStreams& streams() const { return input_.streams(); }

 private:
  std::optional<PackWork> next_shard();
  /// Throws Error, without a path, for unusable records.
  ClipShard parse(io::Record& record);
  void take_name(const ClipShard& shard, const std::string& split);
  /// Reads the next sample into `work`, with its split. False at the end.
  bool next_sample(PackWork& work);

  shard::ReadLimits limits_;
  Finished finished_;
  std::vector<io::Fault> bad_;  // lines since the last record
  shard::ShardInput input_;
  NameTable paths_;  // of all shards so far
  // Hash of "split/name" -> number of the path of the shard that makes it.
  std::unordered_map<std::uint64_t, std::uint32_t> taken_;
  std::shared_ptr<const ClipShard> shard_;        // the one being read
  std::unique_ptr<shard::JoinedReader> samples_;  // null if its samples are not wanted
};

/// The split of a sample: from its own json, by vfm-shard, else its shard's record, else "train".
/// Throws Error if json and record differ, or if it cannot name a folder: a sample of one split
/// must not get into another.
std::string split_of(const shard::Sample& sample, const ClipShard& shard);

}  // namespace vfm::pack
