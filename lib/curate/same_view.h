// How far two pictures are of one view, told by their edges: where the light changes, what lies on
// top of the scene or how far the camera turned matters little to where its edges are.
//
// A flash, an explosion or a lamp leaves the edges of what it lights, weaker; a title covers some;
// a camera that swings moves all by as much. The edges of another scene lie elsewhere. Pure, about
// 200 microseconds: for the few frames that look like a change. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/small_picture.h"

namespace vfm::curate {

struct SharedEdges {
  /// Of the parts of the pictures (4 x 4; those in both, with edges that are not just straight ones
  /// up or across), the share that show the same edges: 0 to 1; 0 where few parts have some, or
  /// those in the middle have others.
  float share = 0;
  int right = 0, down = 0;  ///< how far all have moved from the first to the second, luma cells
  float strength = 1;       ///< contrast of those in the second by that in the first

  /// Whether the pictures are of one view.
  bool most() const { return share > 0.5f; }
};

/// `area`: what is inside black bars of both; their edges are no scene's.
SharedEdges shared_edges(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area);

/// The shift of the whole picture that explains most of how the first became the second, found by
/// plain differences: a soft sky has no edges, but a camera that swings over it moves its colours.
struct WholeShift {
  int right = 0, down = 0;  ///< luma cells, even ones; at least a quarter of the picture is in both
  float left_over = 1;      ///< difference of what is in both, shifted, by that of all at rest
};
/// About a millisecond.
WholeShift whole_shift(const SmallPicture& a, const SmallPicture& b);

/// Whether the pictures differ in one box alone, of at most a third of them, as when a title or a
/// lower third comes or goes over a soft ground: around it they are the same, and there is
/// something to see there. A ground of one colour does not say that two pictures are of one view.
bool differ_in_box(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area);

}  // namespace vfm::curate
