// Pixels in the size, layout and orientation that a consumer wants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "media/frame.h"

namespace vfm::media {

/// Packed RGB, 8 bits, row-major: pixel (x, y) at 3 * (y * width + x).
struct RgbImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

/// A crop in upright display coordinates, then a resize. Zero width: the whole picture.
struct ScaleOptions {
  int rotation = 0;        ///< clockwise degrees, from StreamInfo
  double crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;  ///< fractions of the upright picture
  int width = 0, height = 0;  ///< of the result, upright
};

/// Converts frames of one geometry; rebuilds itself when the input geometry changes.
/// Area-averaging when it shrinks, bicubic when it enlarges; bit-exact across threads and runs.
class Scaler {
 public:
  Scaler();
  ~Scaler();
  Scaler(Scaler&&) noexcept;
  /// `image` is resized as needed.
  void to_rgb(const Frame& frame, const ScaleOptions& options, RgbImage& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
