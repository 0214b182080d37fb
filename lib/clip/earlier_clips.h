// Clips that stand in the folder already, complete, but among other videos than they are to be
// among now: so they are copied, and not made again.
//
// A batch of joined videos (clip/joined.h) changes when one of its videos comes or goes, or when a
// video that had shards of its own is to be joined. What is taken was made with the same settings,
// but for the size of shards, and from a shard whose bytes were compared with their hash.
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

/// What an index says of one of its videos: "source", "source_hash", "clips", "spans" where they
/// were given, and what the cutter says (ClipCutter::summary()).
///
/// Thread-safety: any thread.
class EarlierClips {
 public:
  /// `settings`: of the clips, without their spans.
  EarlierClips(std::string directory, const Json& settings);

  using Take = std::function<void(const shard::Sample& sample)>;
  /// Gives `take` the clips of this video, in their order, and then says what is known of it. Null
  /// if they are not there as they were written: then some may have been given. `spans`: a hash of
  /// those that are given, empty for none. Throws what `take` throws; Stopped.
  Json find(const ClipSource& source, const std::string& spans, const Take& take);

 private:
  struct Store {
    std::string name;
    HeldJson index;
    std::vector<shard::IndexedReader> shards;
    struct Entry {
      HeldJson json;
      std::int64_t first = 0;  // of its clips among those of all shards
    };
    std::unordered_map<std::string, Entry> entries;  // by the hash of the video
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
  std::string last_;                      // the batch that was asked last
  std::optional<Store> store_;            // it, if it can be used
};

}  // namespace vfm::clip
