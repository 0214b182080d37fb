// Black bars beside the picture: letterbox and pillarbox.
//
// A row or a column belongs to a bar if it is black in every frame that was shown to the finder: so
// nothing that can be seen in one of them is ever cut off. Pure; thread-safety: one thread at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "media/frame.h"
#include "media/resizer.h"

namespace vfm::curate {

class BarFinder {
 public:
  /// The next frame, as it is stored. A frame that is black all over says nothing and is passed
  /// over, and so is one of another size than the first.
  void add(const media::Frame& frame);
  /// What is left without the bars, on even rows and columns so that chroma stays in place; nothing
  /// if there are no bars, no frame that is not black, or a part of the picture that is too small
  /// to be believed (under a third of a side).
  std::optional<media::Rectangle> picture() const;
  int width() const { return width_; }  ///< of the frames it speaks of; 0 before the first
  int height() const { return height_; }

 private:
  int width_ = 0, height_ = 0;
  std::vector<bool> row_seen_, column_seen_;  // not black in some frame
};

}  // namespace vfm::curate
