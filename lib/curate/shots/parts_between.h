// Measures how far each part of a picture has changed from one shot to another.
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/shots/wipe.h"

namespace vfm::curate {

inline constexpr int kParts = 64;  ///< Number of parts, 8 x 8.

/// For each part of a picture, the mixture of `before` and `after` that is nearest to `now`.
struct PartsBetween {
  std::array<float, kParts> share;   ///< Share of `after` in the mixture, 0 to 1.
  std::array<float, kParts> weight;  ///< Squared difference of `before` and `after`.
  float misfit = 0;                  ///< Share of the differences that no mixture explains.
  float progress = 0;                ///< Mean of `share`, weighted by `weight`.
};
PartsBetween parts_between(const CoarsePicture& before, const CoarsePicture& now,
                           const CoarsePicture& after);

/// Returns the weighted mean decrease of the field `share` from `earlier` to `later`.
float parts_going_back(const PartsBetween& earlier, const PartsBetween& later);

}  // namespace vfm::curate
