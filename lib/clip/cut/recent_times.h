// Keeps the timestamps of recent frames, because a change of shot is reported late and by frame
// number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "curate/shots/shot_detector.h"

namespace vfm::clip {

/// The timestamps of the last 2 * curate::kShotLag frames.
class RecentTimes {
 public:
  void add(std::int64_t pts) { pts_[static_cast<std::size_t>(count_++ % kSize)] = pts; }
  std::int64_t of(std::int64_t frame) const {
    return pts_[static_cast<std::size_t>(frame % kSize)];
  }

 private:
  static constexpr std::int64_t kSize = 2 * curate::kShotLag;
  std::vector<std::int64_t> pts_ = std::vector<std::int64_t>(kSize);
  std::int64_t count_ = 0;
};

}  // namespace vfm::clip
