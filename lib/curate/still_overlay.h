// What lies over the pictures of a clip and stays while they move: a station's logo, a watermark, a
// caption that is there all along.
//
// Where the gradient of luma is the same in all pictures, an edge stands still; where it changes
// its direction, edges pass by. An overlay is a small group of the first kind in a clip that is
// mostly of the second (as gradients are averaged over time in Dekel et al., "On the effectiveness
// of visible watermarks", 2017, and by logo detectors of television). With a camera that rests on a
// scene nothing can be said, and nothing is. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curate/luma_plane.h"

namespace vfm::curate {

class StillOverlay {
 public:
  /// The next picture; one of another size than the first is passed over.
  void add(const ReducedLuma& picture);
  /// Whether the pictures say anything: at least eight, and most of their edges move.
  bool can_tell() const;
  /// The overlay with the most edges within `area`, both in pixels of the unreduced pictures;
  /// nothing where there is none, none that is at most a tenth of the area, and of what lies in the
  /// middle fifth of both sides, where a zoom stands still.
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
