// A glimpse of a clip: a handful of small pictures spread evenly over it. All that `builtin:look`
// and `builtin:measure` see; decoding and scaling are the caller's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "media/colour/scaler.h"

namespace vfm::curate {

/// Every picture of a glimpse is square, whatever the clip's shape: packed RGB.
inline constexpr int kGlimpseSize = 64;
inline constexpr int kGlimpsePictures = 8;

struct Glimpse {
  std::vector<media::RgbImage>
      pictures;  ///< in time order; one for a still picture, none if undecodable
  std::vector<media::RgbImage>
      later;  ///< later[i] is `lag` seconds after pictures[i]; none for a still
  double lag = 0;
};

/// Which frames to take of a clip of `frames` at `fps`: pictures at `first`, and the ones `step`
/// frames (about an eighth of a second) after them. frames >= 1; step is 0 for one frame.
struct GlimpsePlan {
  std::vector<std::int64_t> first;
  std::int64_t step = 0;
};
GlimpsePlan plan_glimpse(std::int64_t frames, double fps);

/// Light of a picture, row-major: BT.601 luma, 0 black to 1 white.
std::vector<float> luma_of(const media::RgbImage& image);
/// Half the size each way, by averages of 2x2. `size` is even.
std::vector<float> halve(const std::vector<float>& square, int size);

}  // namespace vfm::curate
