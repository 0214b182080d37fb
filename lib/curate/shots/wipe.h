// Measures wipes. In a wipe, a straight edge crosses the picture, and the new shot appears behind
// the edge.
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

/// The means of 4 x 4 cells of a small picture: 16 x 16 of luma, then 8 x 8 of u and 8 x 8 of v.
using CoarsePicture = std::array<std::uint8_t, 384>;
CoarsePicture coarse_picture(const SmallPicture& picture);

enum class WipeWay { right, left, down, up };  ///< Direction in which the edge moves.
inline constexpr int kWipeWays = 4;
inline constexpr int kWipeSteps = 16;  ///< Number of cells in a row or column.

/// The fit of the frame `now` to a wipe from `before` to `after`.
struct WipeFrame {
  /// The agreement for an edge that has passed k of 16 cells. Passed cells should look like
  /// `after`, and other cells like `before`. Cells are weighted by the difference between `before`
  /// and `after`. The agreement is 1 if all cells agree and 0 if half of the cells agree.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> agreement;
  /// The agreement with equal weight for all cells in which `before` and `after` differ.
  std::array<std::array<float, kWipeSteps + 1>, kWipeWays> votes;
  /// The clearness is 1 if each cell equals `before` or `after`, and 0 if each cell resembles both
  /// equally.
  float clearness = 0;
  /// The share of the cells in which `before` and `after` differ.
  float changed = 0;
};
WipeFrame wipe_frame(const CoarsePicture& before, const CoarsePicture& now,
                     const CoarsePicture& after);

/// The direction with the best agreement, for an edge that has crossed part of the picture.
struct WipeEdge {
  WipeWay way = WipeWay::right;
  float agreement = 0;
};
WipeEdge wipe_edge(const WipeFrame& frame, float share);
/// Return the agreement or votes for an edge that has crossed `share` of the picture in direction
/// `way`.
float wipe_agreement(const WipeFrame& frame, WipeWay way, float share);
float wipe_votes(const WipeFrame& frame, WipeWay way, float share);

/// Returns true if both pictures move with the edge, as in a pan from a dark wall to a light wall.
/// Shifted pictures then explain `now` about as well as unshifted pictures, or better.
bool wipe_is_pan(const CoarsePicture& before, const CoarsePicture& now, const CoarsePicture& after,
                 WipeWay way, float share);

}  // namespace vfm::curate
