// Compares the views of two pictures by their edges, whose places hardly depend on the light, on
// overlays, or on how far the camera turned.
//
// A flash, an explosion or a lamp weakens edges, a title covers some, and a swinging camera moves
// all alike. Another scene's edges lie elsewhere. It is pure and takes about 200 microseconds, so
// it is for the few frames that look like a change. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/small_picture.h"

namespace vfm::curate {

struct SharedEdges {
  /// The share, 0 to 1, of parts with the same edges, among the 4 x 4 parts that lie in both
  /// pictures and have more than vertical or horizontal edges; 0 if few parts have edges, or those
  /// in the middle differ.
  float share = 0;
  int right = 0, down = 0;  ///< shift of all edges from the first to the second, luma cells
  float strength = 1;       ///< contrast of the second's edges relative to the first's

  /// Whether the pictures are of one view.
  bool most() const { return share > 0.5f; }
};

/// `area`: the part inside the black bars of both, whose edges do not count.
SharedEdges shared_edges(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area);

/// The shift of the whole picture that best explains the second from the first, by plain
/// differences: a soft sky has no edges, but camera motion moves its colours.
struct WholeShift {
  int right = 0, down = 0;  ///< luma cells, even; the pictures share at least a quarter
  float left_over = 1;      ///< difference of the shared part, shifted, relative to all unshifted
};
/// Takes about a millisecond.
WholeShift whole_shift(const SmallPicture& a, const SmallPicture& b);

/// True if the pictures differ only in one box, of at most a third of them, as when a title or a
/// lower third comes or goes: around it they are the same and have detail. A ground of one colour
/// does not prove one view.
bool differ_in_box(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area);

}  // namespace vfm::curate
