// Finds an overlay that stays while a clip's pictures move: a station's logo, a watermark, a
// constant caption.
//
// A luma gradient that is the same in all pictures belongs to a still edge; a gradient that changes
// direction belongs to moving edges. An overlay is a small group of still edges in a clip whose
// edges mostly move. If the camera rests, there is no result. Gradients are averaged over time as
// in Dekel et al., "On the effectiveness of visible watermarks", 2017. Thread-safety: one thread at
// a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

class StillOverlay {
 public:
  /// Adds a picture; ignores pictures of another size than the first.
  void add(const ReducedLuma& picture);
  /// Returns true if a result is possible: there are at least eight pictures, and most of their
  /// edges move.
  bool can_tell() const;
  /// Returns the overlay within `area` that has most edges. Overlay and `area` are in pixels of the
  /// unreduced pictures. Ignores overlays larger than a tenth of the area, and the middle fifth of
  /// both sides, where a zoom moves nothing.
  std::optional<PixelArea> find(const PixelArea& area) const;

 private:
  /// Sums over pictures at every second pixel of the reduced pictures.
  struct Edge {
    std::int32_t x = 0, y = 0, strength = 0;
  };
  bool still(const Edge& edge) const;
  int factor_ = 0, width_ = 0, height_ = 0, columns_ = 0, rows_ = 0, pictures_ = 0;
  std::vector<Edge> edges_;
};

}  // namespace vfm::curate
