// Finds an overlay that stays while a clip's pictures move: a station's logo, a watermark, a
// constant caption.
//
// Where the gradient of luma is the same in all pictures, an edge stands still; where it changes
// its direction, edges pass by. An overlay is a small group of still edges in a clip whose edges
// mostly move (as gradients are averaged over time in Dekel et al., "On the effectiveness of
// visible watermarks", 2017, and by logo detectors of television). If the camera rests, there is no
// result. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

class StillOverlay {
 public:
  /// Adds the next picture; ignores one of another size than the first.
  void add(const ReducedLuma& picture);
  /// True if a result is possible: at least eight pictures, and most of their edges move.
  bool can_tell() const;
  /// The overlay with most edges within `area`, both in pixels of the unreduced pictures. Ignores
  /// overlays above a tenth of the area, and the middle fifth of both sides, where a zoom stands
  /// still. Nothing if there is none.
  std::optional<PixelArea> find(const PixelArea& area) const;

 private:
  /// Sums over pictures at every second pixel of the reduced ones.
  struct Edge {
    std::int32_t x = 0, y = 0, strength = 0;
  };
  bool still(const Edge& edge) const;
  int factor_ = 0, width_ = 0, height_ = 0, columns_ = 0, rows_ = 0, pictures_ = 0;
  std::vector<Edge> edges_;
};

}  // namespace vfm::curate
