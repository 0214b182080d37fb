// A glimpse of a clip: a few small pictures, spread evenly over it. `builtin:look` and
// `builtin:measure` use only a glimpse. The caller decodes and scales.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "media/colour/scaler.h"

namespace vfm::curate {

/// Pictures of a glimpse are packed RGB, stretched to this square.
inline constexpr int kGlimpseSize = 64;
inline constexpr int kGlimpsePictures = 8;

struct Glimpse {
  std::vector<media::RgbImage>
      pictures;  ///< in time order; one for a still picture, none if undecodable
  std::vector<media::RgbImage>
      later;  ///< later[i] is `lag` seconds after pictures[i]; none for a still picture
  double lag = 0;
};

/// The frames to take from a clip of `frames` (at least 1) at `fps`: the frames in `first`, and for
/// each of them the frame `step` frames (about an eighth of a second) later. `step` is 0 for a clip
/// of one frame.
struct GlimpsePlan {
  std::vector<std::int64_t> first;
  std::int64_t step = 0;
};
GlimpsePlan plan_glimpse(std::int64_t frames, double fps);

/// Returns the BT.601 luma of a picture, row-major, from 0 (black) to 1 (white).
std::vector<float> luma_of(const media::RgbImage& image);
/// Halves a picture of `size` x `size` (even) by averages of 2 x 2.
std::vector<float> halve(const std::vector<float>& square, int size);

}  // namespace vfm::curate
