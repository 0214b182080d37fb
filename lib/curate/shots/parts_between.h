// Measures how far each part of a picture has changed from one shot to another.
//
// If a shot replaces another shot without motion, as an opening circle does, each part shows the
// old shot, then a mixture, then the new shot. If the camera moves, parts resemble neither shot.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/shots/wipe.h"

namespace vfm::curate {

inline constexpr int kParts = 64;  ///< number of parts, 8 x 8

struct PartsBetween {
  std::array<float, kParts> share;   ///< share of `after` in the nearest mixture, 0 to 1
  std::array<float, kParts> weight;  ///< squared difference of `before` and `after`
  float misfit = 0;    ///< share of the differences that no mixture explains, 0.75 for unrelated
                       ///< pictures
  float progress = 0;  ///< mean share
};
PartsBetween parts_between(const CoarsePicture& before, const CoarsePicture& now,
                           const CoarsePicture& after);

/// Returns the weighted mean decrease of the shares from `earlier` to `later`.
float parts_going_back(const PartsBetween& earlier, const PartsBetween& later);

}  // namespace vfm::curate
