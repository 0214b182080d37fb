// Measures how far each part of a picture has changed from one shot to another.
//
// If a shot replaces another without moving (an opening circle, doors, slices, a clock hand, a soft
// edge), each part shows the first shot, then a mixture, then the second. With a moving camera,
// parts fit neither shot; in a turning scene, parts go back and forth. Pure functions.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/shots/wipe.h"

namespace vfm::curate {

inline constexpr int kParts = 64;  ///< 8 x 8; each has four cells of luma, one of u and one of v

struct PartsBetween {
  std::array<float, kParts> share;   ///< of `after` in the nearest mixture, 0 to 1
  std::array<float, kParts> weight;  ///< squared difference of `before` and `after`
  float misfit = 0;    ///< share of the differences that no mixture explains; 0.75 if unrelated
  float progress = 0;  ///< mean of the shares
};
PartsBetween parts_between(const CoarsePicture& before, const CoarsePicture& now,
                           const CoarsePicture& after);

/// Returns the weighted mean by which shares fall from `earlier` to `later`.
float parts_going_back(const PartsBetween& earlier, const PartsBetween& later);

}  // namespace vfm::curate
