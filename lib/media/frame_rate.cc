// SPDX-License-Identifier: Apache-2.0
#include "media/frame_rate.h"

#include "base/error.h"

namespace vfm::media {
namespace {

constexpr double kSlowest = 0.1, kFastest = 1000;  // frames a second

}  // namespace

Rational frame_rate(double fps) {
  if (!(fps >= kSlowest && fps <= kFastest))
    fail("{} frames a second: must be between {} and {}", fps, kSlowest, kFastest);
  return nearest_rate(fps);
}

}  // namespace vfm::media
