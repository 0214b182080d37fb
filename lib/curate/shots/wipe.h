// Measures wipes, in which a straight edge crosses the picture, followed by the new shot.
//
// In a frame within a wipe, each cell looks as before or as after the wipe, and an edge separates
// these two kinds. A dissolve has mixed cells, a cut has no edge, and a moving camera gives cells
// of neither kind, so they do not fit. Pure functions. Thread-safety: none needed.
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
inline constexpr int kWipeSteps = 16;  ///< cells in a row or column

/// How well `now` fits as a frame within a wipe.
struct WipeFrame {
  /// For an edge after k of 16 cells, how far cells that it has passed look like `after` and other
  /// cells like `before`, weighted by their difference. 1 means all, 0 half, and below 0 the
  /// reverse.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> agreement;
  /// The same as `agreement`, but with equal weight for all cells in which `before` and `after`
  /// differ. In `agreement` a few cells outweigh all other cells if a camera moves from dark to
  /// light.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> votes;
  /// How clearly cells look like `before` or `after`: 1 means exactly, 0 equally like both.
  float clearness = 0;
  /// The share of the cells in which `before` and `after` differ. An appearing title changes few
  /// cells.
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
/// Return the `agreement` and the `votes` of an edge in a given direction after `share` of the
/// picture.
float wipe_agreement(const WipeFrame& frame, WipeWay way, float share);
float wipe_votes(const WipeFrame& frame, WipeWay way, float share);

/// Returns true if both pictures move with the edge, as when a camera turns from a dark to a light
/// wall: the shifted pictures explain `now` about as well as the unshifted, or better.
bool wipe_is_pan(const CoarsePicture& before, const CoarsePicture& now, const CoarsePicture& after,
                 WipeWay way, float share);

}  // namespace vfm::curate
