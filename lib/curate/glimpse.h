// A glimpse is a few small pictures, spread evenly over a clip. `builtin:look` and
// `builtin:measure` read only a glimpse of a clip. The caller decodes and scales the pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "media/colour/scaler.h"

namespace vfm::curate {

/// The side of a picture in pixels. Pictures are packed RGB, stretched to a square.
inline constexpr int kGlimpseSize = 64;
inline constexpr int kGlimpsePictures = 8;

struct Glimpse {
  /// The pictures in order of time. A still picture gives one picture, and an undecodable clip
  /// gives no picture.
  std::vector<media::RgbImage> pictures;
  /// The picture later[i] is `lag` seconds after pictures[i]. `later` is empty for a still picture.
  std::vector<media::RgbImage> later;
  double lag = 0;
};

/// The frames to decode for a glimpse: each frame in `first`, and the frame `step` frames later.
struct GlimpsePlan {
  std::vector<std::int64_t> first;
  std::int64_t step = 0;
};
/// Plans a glimpse of a clip that has `frames` frames, at least one. The `step` of the plan is
/// about an eighth of a second, or 0 for a clip of one frame.
GlimpsePlan plan_glimpse(std::int64_t frames, double fps);

/// Returns the BT.601 luma of a picture, row-major, from 0 (black) to 1 (white).
std::vector<float> luma_of(const media::RgbImage& image);
/// Halves both sides of a square picture. Each new pixel is the mean of 2 x 2 pixels. `size` is the
/// side of `square`, an even number.
std::vector<float> halve(const std::vector<float>& square, int size);

}  // namespace vfm::curate
