// How far a picture has come from one to another, part by part: whatever the way in which one shot
// takes the other's place without moving (a circle that opens, doors, slices, a hand of a clock, a
// soft edge), each part of the picture shows the one, then a mixture of both, then the other.
//
// A moving camera shows what is neither, a scene that turns goes back and forth. Pure functions.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/wipe.h"

namespace vfm::curate {

inline constexpr int kParts = 64;  ///< 8 x 8, of four cells of luma, one of u and one of v

struct PartsBetween {
  std::array<float, kParts> share;   ///< of `after` in the mixture that is nearest, 0 to 1
  std::array<float, kParts> weight;  ///< squared difference of `before` and `after`
  float misfit = 0;    ///< what the mixtures leave, of all that differs: of unrelated pictures 0.75
  float progress = 0;  ///< mean of the shares
};
PartsBetween parts_between(const CoarsePicture& before, const CoarsePicture& now,
                           const CoarsePicture& after);

/// Mean of what parts lose of their share from `earlier` to `later`, by weight.
float parts_going_back(const PartsBetween& earlier, const PartsBetween& later);

}  // namespace vfm::curate
