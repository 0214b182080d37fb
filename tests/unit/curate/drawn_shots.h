// Videos that tests draw, and the changes of shot found in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "curate/shots/shot_detector.h"
#include "drawing.h"

namespace drawn_shots {

using vfm::curate::FrameFeatures;
using vfm::curate::ShotChange;
using vfm::curate::ShotDetector;
using vfm::curate::ShotOptions;
using vfm::media::Frame;

inline constexpr int kWidth = 96, kHeight = 64;
using Video = std::vector<Frame>;

template <class Paint>
Frame drawn(Paint&& paint) {
  return drawing::frame(kWidth, kHeight, paint);
}

/// All changes; checks on the way what streaming callers rely on.
inline std::vector<ShotChange> detect(const Video& video, const ShotOptions& options = {}) {
  ShotDetector detector(options);
  FrameFeatures features;
  std::vector<ShotChange> changes;
  std::int64_t settled = 0, faded = -1;
  const auto take = [&] {
    for (const ShotChange& change : detector.take()) {
      // Frames given their place stay there; of a long fade it is told early.
      CHECK((change.end >= settled || change.end == faded));
      CHECK(change.begin >= change.end);
      if (!changes.empty()) CHECK(change.end >= changes.back().begin);
      changes.push_back(change);
    }
    CHECK(detector.settled() >= settled);
    settled = detector.settled();
  };
  for (const Frame& frame : video) {
    vfm::curate::compute_features(frame, features);
    detector.push(features);
    take();
    faded = detector.open_fade().value_or(faded);
  }
  detector.finish();
  settled = std::min(settled, detector.settled());
  take();
  CHECK(detector.settled() == static_cast<std::int64_t>(video.size()));
  return changes;
}

inline std::vector<std::int64_t> frames_of(const std::vector<ShotChange>& changes) {
  std::vector<std::int64_t> frames;
  for (const ShotChange& change : changes)
    frames.push_back(change.frame);
  return frames;
}

using Frames = std::vector<std::int64_t>;

inline std::string text_of(const std::vector<ShotChange>& changes) {
  std::string text;
  for (const ShotChange& c : changes)
    text += fmt::format("{} [{}, {}) at {}, {:.2f}; ", name_of(c.type), c.end, c.begin, c.frame,
                        c.score);
  return text;
}

}  // namespace drawn_shots
