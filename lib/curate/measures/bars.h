// Finds black bars (letterbox, pillarbox) around the picture of a video.
//
// A row or column belongs to a bar if the row or column is black in all frames.
// Pure. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "media/colour/resizer.h"
#include "media/frame.h"

namespace vfm::curate {

class BarFinder {
 public:
  /// Adds a frame as stored. Ignores black frames, and frames of another size than the first frame.
  void add(const media::Frame& frame);
  /// Returns the picture without bars, with even numbers as edges. Returns nullopt if there are no
  /// bars, if all frames are black, or if less than a third of a side would remain.
  std::optional<media::Rectangle> picture() const;
  int width() const { return width_; }  ///< Width of the frames, or 0 before the first frame.
  int height() const { return height_; }

 private:
  int width_ = 0, height_ = 0;
  std::vector<bool> row_seen_, column_seen_;  // true for a row or column that is not a bar
};

}  // namespace vfm::curate
