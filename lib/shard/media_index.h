// Reads facts of videos and pictures from the index of a dataset (.nv-meta/index.sqlite,
// vfm-shard(5)). Read only; its schema is not trusted. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace vfm::shard {

class MediaIndex {
 public:
  /// Opens the index of the dataset in `directory`. Throws Error{usage} without one.
  explicit MediaIndex(const std::string& directory);
  ~MediaIndex();
  MediaIndex(MediaIndex&&) noexcept;

  /// The metadata of the member KEY.EXTENSION: for a video video_num_frames, video_width, ...; for
  /// a picture width, height. Null: the index has none. Throws Error if it is damaged.
  Json find(std::string_view key, std::string_view extension);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::shard
