// The progress of a picture from one to another, part by part. However one shot replaces the other
// without moving (an opening circle, doors, slices, a clock hand, a soft edge), each part of the
// picture shows the first, then a mixture, then the other.
//
// A moving camera shows parts of neither; a turning scene goes back and forth. Pure functions.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/shots/wipe.h"

namespace vfm::curate {

inline constexpr int kParts = 64;  ///< 8 x 8, of four cells of luma, one of u and one of v

struct PartsBetween {
  std::array<float, kParts> share;   ///< of `after` in the nearest mixture, 0 to 1
  std::array<float, kParts> weight;  ///< squared difference of `before` and `after`
  float misfit = 0;    ///< share of the differences that mixtures leave; 0.75 for unrelated
                       ///< pictures
  float progress = 0;  ///< mean of the shares
};
PartsBetween parts_between(const CoarsePicture& before, const CoarsePicture& now,
                           const CoarsePicture& after);

/// The weighted mean loss of the parts' shares from `earlier` to `later`.
float parts_going_back(const PartsBetween& earlier, const PartsBetween& later);

}  // namespace vfm::curate
