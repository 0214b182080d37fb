// SPDX-License-Identifier: Apache-2.0
#include "media/frame_rate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vfm::media {
namespace {

constexpr double kSlowest = 0.1, kFastest = 1000;  // frames a second

}  // namespace

Rational frame_rate(double fps) {
  if (!(fps >= kSlowest && fps <= kFastest))
    fail("{} frames a second: must be between {} and {}", fps, kSlowest, kFastest);
  const double broadcast = fps * 1001 / 1000;
  if (fps == std::round(fps)) return {std::lround(fps), 1};
  if (std::abs(broadcast - std::round(broadcast)) < 1e-4)
    return {std::lround(broadcast) * 1000, 1001};
  return {std::max(1L, std::lround(fps * 1000)), 1000};
}

}  // namespace vfm::media
