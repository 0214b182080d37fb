// Reads the input of vfm-pack in order: the shards of a manifest, sample by sample. Memory for each
// shard read so far: about 60 bytes plus the length of its path. Thread-safety: one thread at a
// time.
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
#include "io/kept_objects.h"
#include "io/manifest.h"
#include "shard/columns.h"
#include "shard/listed_clips.h"
#include "shard/name_table.h"
#include "shard/part_shards.h"
#include "shard/sample.h"
#include "shard/shard_input.h"

namespace vfm::pack {

/// A shard of clips. The latents of its samples are in DIR/SPLIT/name.tar, one tar for each split.
struct ClipShard {
  std::string path;          ///< Path in the manifest.
  std::string split;         ///< Split of samples whose json has no split.
  bool split_given = false;  ///< If true, the record has a split. If false, `split` is "train".
  std::string name;
  std::vector<std::string> tars;  ///< Tars of the shard and of its columns.
  HeldJson record;
};

/// A step of work. A step has exactly one of `begin`, `sample` and `end`, or only `errors`.
struct PackWork {
  std::vector<io::Fault> errors;  ///< Errors since the previous step.
  /// The step's shard, or null for a step with only `errors`.
  std::shared_ptr<const ClipShard> shard;
  bool begin = false;
  std::optional<shard::Sample> sample;
  std::string split;
  std::string refusal;  ///< Reason to refuse the sample, or empty.
  bool end = false;
  std::vector<io::Fault> faults;  ///< Errors of skipped parts of the shard, set with `end`.
  bool any_refused = false;       ///< Set with `end`. If true, a sample of the shard was skipped.
};

/// Returns the size and hash of each tar. If the shard's record has the tar's real size, the hash
/// of the shard's own tar is taken from the record. check_shard_bytes() checks this hash before the
/// shard is read.
Json sources_of(const ClipShard& shard);

class PackFeed {
 public:
  /// A function that returns the splits of a shard if an earlier run finished the shard. For an
  /// unfinished shard, returns an empty list.
  using Finished = std::function<std::vector<std::string>(const ClipShard&)>;
  /// `finished` is called for each shard. Finished shards give only the steps `begin` and `end`.
  /// With `part`, takes only the shards of the part.
  PackFeed(const std::vector<std::string>& inputs, const shard::ReadLimits& limits,
           Finished finished, const shard::PartShards* part = nullptr);
  ~PackFeed();
  std::optional<PackWork> next();
  io::InputStreams streams() const { return input_.streams(); }

 private:
  shard::ShardInput open(const std::vector<std::string>& inputs, const shard::PartShards* part);
  std::optional<PackWork> next_shard();
  /// Returns the shard of a record. If the record is unusable, throws Error, whose message does not
  /// contain the path.
  ClipShard parse(io::Record& record);
  void take_name(const ClipShard& shard, const std::string& split);
  /// Reads the next sample and its split into `work`. Returns false at the end.
  bool next_sample(PackWork& work);

  shard::ReadLimits limits_;
  Finished finished_;
  std::vector<io::Fault> bad_;
  shard::ShardInput input_;
  shard::NameTable paths_;
  // hash of "split/name" -> number of the source shard in paths_
  std::unordered_map<std::uint64_t, std::uint32_t> taken_;
  std::shared_ptr<const ClipShard> shard_;
  std::optional<shard::DuplicateHashes> duplicates_;  // of shard_
  std::optional<io::KeptObjects> kept_;               // its tars
  std::unique_ptr<shard::JoinedReader> samples_;  // null if samples need not be read
};

/// Returns the split in the sample's json. If the json has no split, returns the split in the
/// shard's record, or "train". Throws Error if json and record have different splits, or if the
/// split cannot name a folder.
std::string split_of(const shard::Sample& sample, const ClipShard& shard);

}  // namespace vfm::pack
