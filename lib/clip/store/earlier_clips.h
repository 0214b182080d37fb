// Finds complete clips in the output folder whose batch has changed, to copy these clips.
//
// A batch of joined videos (clip/store/joined.h) changes when a video is added or removed, or when
// a video with its own shards is to be joined. Clips are copied only if they were made with the
// same settings, except the size of shards, and their shard's hash is right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "clip/source.h"
#include "io/first_names.h"
#include "shard/reader.h"

namespace vfm::clip {

/// Looks up a video's clips and the video's entry in an index: "source", "source_hash", "clips",
/// given "spans", and ClipCutter::summary().
///
/// Thread-safety: any thread.
class EarlierClips {
 public:
  /// `settings`: the clips' settings without spans.
  EarlierClips(std::string directory, const Json& settings);

  using Take = std::function<void(const shard::Sample& sample)>;
  /// Passes the clips of this video to `take`, in order, and returns its entry. Returns null if
  /// clips are missing or changed; even then `take` may have received some clips. `spans`: a hash
  /// of the given spans, or empty. Throws what `take` throws; Stopped.
  Json find(const ClipSource& source, const std::string& spans, const Take& take);

 private:
  struct Store {
    std::string name;
    HeldJson index;
    std::vector<shard::IndexedReader> shards;
    struct Entry {
      HeldJson json;
      std::int64_t first = 0;  // number of its first clip in all shards
    };
    std::unordered_map<std::string, Entry> entries;  // by the video's hash
  };
  std::optional<Store> open(const std::string& name) const;
  bool is_same(const Json& settings) const;
  void find_joined();
  void choose(const std::string& name);
  static bool give(const Store& store, std::int64_t first, std::int64_t count, const Take& take);
  static Json find_in(const Store& store, const ClipSource& source, const std::string& spans,
                      const Take& take);

  std::string directory_;
  HeldJson settings_;
  std::mutex mutex_;
  std::optional<io::FirstNames> joined_;  // hash of a video -> the batch that has it
  std::string last_;                      // the last batch looked up
  std::optional<Store> store_;            // of `last_`, if usable
};

}  // namespace vfm::clip
