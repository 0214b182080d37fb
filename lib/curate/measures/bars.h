// Finds black bars (letterbox, pillarbox) around the picture of a video.
//
// A row or column belongs to a bar if it is black in every frame given. Pure; thread-safety: one
// thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "media/colour/resizer.h"
#include "media/frame.h"

namespace vfm::curate {

class BarFinder {
 public:
  /// Adds a frame as stored. Ignores black frames, and frames of another size than the first.
  void add(const media::Frame& frame);
  /// Returns the picture without bars, on even rows and columns so that chroma stays in place.
  /// Returns no value if there are no bars, if all frames are black, or if less than a third of a
  /// side would remain.
  std::optional<media::Rectangle> picture() const;
  int width() const { return width_; }  ///< width of the frames; 0 before the first
  int height() const { return height_; }

 private:
  int width_ = 0, height_ = 0;
  std::vector<bool> row_seen_, column_seen_;  // not black in some frame
};

}  // namespace vfm::curate
