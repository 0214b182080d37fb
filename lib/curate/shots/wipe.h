// Wipes: a straight edge crosses the picture, with the new shot behind it.
//
// Each cell of a frame within a wipe looks as before or as after the wipe, and an edge separates
// the two kinds. A dissolve has cells in between, a cut no edge, a moving camera cells that are
// neither; so all of them fail. Pure functions. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

/// Means of 4 x 4 cells of a small picture: 16 x 16 of luma, then 8 x 8 of u and of v.
using CoarsePicture = std::array<std::uint8_t, 384>;
CoarsePicture coarse_picture(const SmallPicture& picture);

enum class WipeWay { right, left, down, up };  ///< the direction of the edge
inline constexpr int kWipeWays = 4;
inline constexpr int kWipeSteps = 16;  ///< places of an edge, in a row or column of cells

/// The likeness of `now` to a frame within a wipe.
struct WipeFrame {
  /// For an edge after k of 16 cells, how far the cells behind it look like `after` and the others
  /// like `before`, weighted by their difference: 1 all, 0 half, below 0 the reverse.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> agreement;
  /// The same, but each cell in which `before` and `after` differ counts as much as any other: when
  /// a camera moves from dark to light, a few cells outweigh the rest.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> votes;
  /// How clearly cells look like one of the two: 1 exactly, 0 as much like the other.
  float clearness = 0;
  /// Share of the cells in which `before` and `after` differ. An appearing title changes few.
  float changed = 0;
};
WipeFrame wipe_frame(const CoarsePicture& before, const CoarsePicture& now,
                     const CoarsePicture& after);

/// The best direction of an edge that has crossed about `share` of the picture.
struct WipeEdge {
  WipeWay way = WipeWay::right;
  float agreement = 0;
};
WipeEdge wipe_edge(const WipeFrame& frame, float share);
/// The same for a given direction, by `agreement` and by `votes`.
float wipe_agreement(const WipeFrame& frame, WipeWay way, float share);
float wipe_votes(const WipeFrame& frame, WipeWay way, float share);

/// True if both pictures move with the edge, as when a camera swings from a dark wall to a light
/// one: shifted, they explain `now` about as well as unshifted, or better.
bool wipe_is_pan(const CoarsePicture& before, const CoarsePicture& now, const CoarsePicture& after,
                 WipeWay way, float share);

}  // namespace vfm::curate
