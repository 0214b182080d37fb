// Reads metadata of videos and pictures from the index of a dataset (.nv-meta/index.sqlite,
// vfm-shard(5)). The index may be damaged or hostile.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace vfm::shard {

class MediaIndex {
 public:
  /// Opens the index of the dataset in `directory`. Throws Error{usage} if there is no index.
  explicit MediaIndex(const std::string& directory);
  ~MediaIndex();
  MediaIndex(MediaIndex&&) noexcept;

  /// Returns the metadata of the member KEY.EXTENSION: "video_num_frames", "video_width", ... for a
  /// video; "width" and "height" for a picture. Returns null if there is no metadata. Throws Error
  /// if the index is damaged.
  Json find(std::string_view key, std::string_view extension);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::shard
