// Finds an overlay that does not move during a clip, such as a logo, a watermark or a constant
// caption.
//
// An overlay is a small group of still edges in a clip whose edges mostly move. If the camera is
// still, there is no result. Luma gradients are averaged over time as in Dekel et al., "On the
// effectiveness of visible watermarks", 2017.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

class StillOverlay {
 public:
  /// Adds a picture. Ignores a picture if its size differs from the size of the first picture.
  void add(const ReducedLuma& picture);
  /// Returns true if there are at least eight pictures, and most of their edges move.
  bool can_tell() const;
  /// Returns the overlay within `area` that has the most edges, or nullopt. `area` and the result
  /// are in pixels of the pictures before reduction. Ignores overlays larger than a tenth of
  /// `area`. Ignores edges in the middle rectangle, which has a fifth of the width and a fifth of
  /// the height of the pictures.
  std::optional<PixelArea> find(const PixelArea& area) const;

 private:
  /// The sums of gradients over all pictures, at every second pixel.
  struct Edge {
    std::int32_t x = 0, y = 0, strength = 0;
  };
  bool still(const Edge& edge) const;
  int factor_ = 0, width_ = 0, height_ = 0, columns_ = 0, rows_ = 0, pictures_ = 0;
  std::vector<Edge> edges_;
};

}  // namespace vfm::curate
