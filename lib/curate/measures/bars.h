// Black bars beside the picture: letterbox and pillarbox.
//
// A row or column belongs to a bar if it is black in every frame given: so nothing visible in any
// of them is cut off. Pure; thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "media/colour/resizer.h"
#include "media/frame.h"

namespace vfm::curate {

class BarFinder {
 public:
  /// The next frame, as it is stored. Black frames, and frames of another size than the first, are
  /// ignored.
  void add(const media::Frame& frame);
  /// The picture without bars, on even rows and columns so that chroma stays in place. Nothing if
  /// there are no bars, all frames are black, or the rest is implausibly small (under a third of a
  /// side).
  std::optional<media::Rectangle> picture() const;
  int width() const { return width_; }  ///< of the frames it speaks of; 0 before the first
  int height() const { return height_; }

 private:
  int width_ = 0, height_ = 0;
  std::vector<bool> row_seen_, column_seen_;  // not black in some frame
};

}  // namespace vfm::curate
