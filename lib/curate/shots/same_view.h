// Tests by edges whether two pictures show the same view, despite different light, overlays, or a
// turned camera.
//
// A flash, an explosion or a lamp weakens edges, a title covers some edges, and a turning camera
// moves all edges alike. In another scene edges lie elsewhere. A comparison takes about 200
// microseconds, so compare only the few frames that look like a change. Pure. Thread-safety: none
// needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/small_picture.h"

namespace vfm::curate {

struct SharedEdges {
  /// The share, 0 to 1, of parts with the same edges. Parts are compared if they lie in both
  /// pictures and have more than purely vertical or horizontal edges; each picture has 4 x 4 parts.
  /// The share is 0 if few parts have edges, or if the middle parts differ.
  float share = 0;
  int right = 0, down = 0;  ///< shift of all edges from the first to the second, luma cells
  float strength = 1;       ///< contrast of the second's edges relative to the first's

  /// Returns true if the pictures show one view.
  bool most() const { return share > 0.5f; }
};

/// `area` is the part inside the black bars of both pictures.
SharedEdges shared_edges(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area);

/// The shift of the first picture that best explains the second, by plain differences. It is meant
/// for pictures without edges, such as soft sky, whose colours move with the camera.
struct WholeShift {
  int right = 0, down = 0;  ///< luma cells, even; at least a quarter is shared
  float left_over = 1;      ///< difference of the shared part, relative to the unshifted pictures
};
/// Finds the WholeShift. A call takes about a millisecond.
WholeShift whole_shift(const SmallPicture& a, const SmallPicture& b);

/// Returns true if the pictures differ only in one box of at most a third of the area, as when a
/// title comes or goes. Around the box the pictures are the same and have detail.
bool differ_in_box(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area);

}  // namespace vfm::curate
