// What vfm-pack works on, in the order of the input: the shards of the manifest, sample by sample.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "io/manifest.h"
#include "jobs/columns.h"
#include "shard/sample.h"

namespace vfm::jobs {

/// A shard of clips, and where its latents go.
struct ClipShard {
  std::string path;               ///< as the manifest names it
  std::string split, name;        ///< of the output: DIR/split/name
  std::vector<std::string> tars;  ///< its columns
  Json record;                    ///< of the manifest
};

/// One thing to do. Of the members that say what, one is set.
struct PackWork {
  std::vector<std::pair<std::string, std::string>> errors;  ///< met on the way here: input, message
  std::shared_ptr<const ClipShard> shard;                   ///< null: only errors
  bool begin = false;                                       ///< the shard begins
  std::optional<shard::Sample> sample;
  bool end = false;    ///< the shard ends
  std::string damage;  ///< why it ends early; empty: it does not
};

class PackFeed {
 public:
  /// `wanted` is asked for each shard, before its samples are read, whether they are needed; its
  /// begin and end come anyway.
  PackFeed(const std::vector<std::string>& inputs, std::function<bool(const ClipShard&)> wanted);
  ~PackFeed();
  std::optional<PackWork> next();

 private:
  std::optional<PackWork> next_shard();
  std::optional<io::Record> next_record();
  /// Throws Error, without a path, for what cannot be worked on.
  ClipShard parse(io::Record& record);

  std::function<bool(const ClipShard&)> wanted_;
  std::vector<io::Record> listed_;  // of dataset folders
  std::size_t next_listed_ = 0;
  std::vector<std::pair<std::string, std::string>> bad_;  // lines since the last record
  std::unique_ptr<io::ManifestReader> reader_;
  std::map<std::string, std::string> taken_;  // "split/name" -> path of the shard
  std::shared_ptr<const ClipShard> shard_;    // the one being read
  std::unique_ptr<JoinedReader> samples_;     // null if its samples are not wanted
};

}  // namespace vfm::jobs
