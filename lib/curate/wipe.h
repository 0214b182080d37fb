// Wipes: a straight edge crosses the picture, and behind it the new shot is to be seen.
//
// A cell of a frame within a wipe looks as it did before it, or as it will after it, and an edge
// parts the two kinds. A dissolve has cells between the two, a cut no edge, a moving camera cells
// that are neither; so all of them fail. Pure functions. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

/// Means of 4 x 4 cells of a small picture: 16 x 16 of luma, then 8 x 8 of u and of v.
using CoarsePicture = std::array<std::uint8_t, 384>;
CoarsePicture coarse_picture(const SmallPicture& picture);

enum class WipeWay { right, left, down, up };  ///< where the edge goes
inline constexpr int kWipeWays = 4;
inline constexpr int kWipeSteps = 16;  ///< places of an edge, in a row or column of cells

/// How like a frame in the midst of a wipe `now` is.
struct WipeFrame {
  /// For an edge that has gone k of 16 cells, whether the cells behind it look like `after` and the
  /// others like `before`: 1 all, 0 as many as not, by how much they differ; below 0 the reverse.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> agreement;
  /// The same, but each cell in which `before` and `after` differ counts as much as any other: when
  /// a camera comes from something dark to something light, a few cells outweigh all the rest.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> votes;
  /// How clearly cells look like one of the two: 1 exactly, 0 as much like the other.
  float clearness = 0;
  /// Share of the cells in which `before` and `after` differ. A title that comes changes few.
  float changed = 0;
};
WipeFrame wipe_frame(const CoarsePicture& before, const CoarsePicture& now,
                     const CoarsePicture& after);

/// The best way for an edge to have gone about `share` of the picture.
struct WipeEdge {
  WipeWay way = WipeWay::right;
  float agreement = 0;
};
WipeEdge wipe_edge(const WipeFrame& frame, float share);
/// The same for a given way, by `agreement` and by `votes`.
float wipe_agreement(const WipeFrame& frame, WipeWay way, float share);
float wipe_votes(const WipeFrame& frame, WipeWay way, float share);

/// Whether both pictures go along with the edge, as when a camera swings from a dark wall to a
/// light one: shifted, they explain `now` about as well as where they stand, or better.
bool wipe_is_pan(const CoarsePicture& before, const CoarsePicture& now, const CoarsePicture& after,
                 WipeWay way, float share);

}  // namespace vfm::curate
