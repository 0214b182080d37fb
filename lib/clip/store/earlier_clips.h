// Finds complete clips of earlier runs in the output folder, to copy them into a changed batch.
//
// A batch of joined videos (clip/store/joined.h) changes if a video is added or removed, or if a
// video with its own shards is joined. Clips are copied only if their settings are those of this
// run (except the size of shards), and if the hash of their shard is right.
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

/// Thread-safety: any thread.
class EarlierClips {
 public:
  /// Opens the folder, to find clips with `settings`, which must not include spans.
  EarlierClips(std::string directory, const Json& settings);

  using Take = std::function<void(const shard::Sample& sample)>;
  /// Passes the clips of the video to `take`, in order, and returns the video's entry in the index
  /// ("source", "source_hash", "clips", "spans", and ClipCutter::summary()). If clips are missing
  /// or changed, returns null, even if `take` has received some clips. `spans` is a hash of
  /// the given spans, or empty. Throws what `take` throws, and Stopped.
  Json find(const ClipSource& source, const std::string& spans, const Take& take);

 private:
  struct Store {
    std::string name;
    HeldJson index;
    std::vector<shard::IndexedReader> shards;
    struct Entry {
      HeldJson json;
      std::int64_t first = 0;  // index of the first clip among all clips of the shards
    };
    std::unordered_map<std::string, Entry> entries;
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
  std::optional<io::FirstNames> joined_;  // hash of a video -> its batch
  std::string last_;                      // name of the batch in store_
  std::optional<Store> store_;
};

}  // namespace vfm::clip
