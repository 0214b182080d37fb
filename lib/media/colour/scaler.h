// Crops, scales and rotates frames to RGB, for viewing and training.
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

/// A crop in upright display coordinates, then a resize.
struct ScaleOptions {
  int rotation = 0;     ///< clockwise degrees, from StreamInfo
  bool mirror = false;  ///< flip left to right before the rotation, from StreamInfo
  /// Fractions of the upright picture; zero width means the whole picture. Edges are rounded to
  /// whole pixels (left and top edges of subsampled layouts to even pixels), and at least one pixel
  /// is kept.
  double crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;
  int width = 0, height = 0;  ///< of the result, upright; 0 x 0: the size of the crop
  bool bicubic = false;       ///< is also used to shrink, as the ffmpeg program does
};

/// Scales by area averages to shrink, and by bicubic interpolation to enlarge. Results are
/// bit-exact across threads and runs. Scaling is fastest if all frames have the same size and
/// layout. YUV becomes full-range RGB by the frame's matrix (resolve_matrix()) and range.
/// Thread-safety: one thread at a time; different scalers are independent.
class Scaler {
 public:
  Scaler();
  ~Scaler();
  Scaler(Scaler&&) noexcept;
  Scaler& operator=(Scaler&&) noexcept;
  /// `image` is resized as needed. Throws Error for an empty frame or an impossible size.
  void to_rgb(const Frame& frame, const ScaleOptions& options, RgbImage& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns a copy of the image as a frame (rgb24, full range).
Frame to_frame(const RgbImage& image);

}  // namespace vfm::media
