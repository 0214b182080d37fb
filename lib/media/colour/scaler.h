// Crops, scales and rotates frames, and converts them to RGB.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "media/frame.h"

namespace vfm::media {

/// A picture of 8-bit RGB samples in rows. Pixel (x, y) begins at index 3 * (y * width + x).
struct RgbImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

/// Options of Scaler, which first crops the upright picture, and then resizes the crop.
struct ScaleOptions {
  int rotation = 0;     ///< Clockwise rotation in degrees (StreamInfo::rotation).
  bool mirror = false;  ///< Flips left to right before the rotation (StreamInfo::mirror).
  /// The crop, in fractions of the upright picture. Zero width means the whole picture. Edges are
  /// rounded to whole pixels. In subsampled layouts, left and top edges are rounded to even pixels.
  /// The crop has at least one pixel.
  double crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;
  int width = 0, height = 0;  ///< Size of the upright result; 0 x 0 for the size of the crop.
  bool bicubic = false;       ///< Shrinks by bicubic interpolation too, as the ffmpeg program does.
};

/// A converter to RGB. Shrinks by area averages, and enlarges by bicubic interpolation. Results
/// have the same bits in every thread and run. The frame's matrix (resolve_matrix()) and range
/// decide how YUV becomes full-range RGB. Scaling is fastest if all frames have the same size and
/// layout. Thread-safety: one thread at a time.
class Scaler {
 public:
  Scaler();
  ~Scaler();
  Scaler(Scaler&&) noexcept;
  Scaler& operator=(Scaler&&) noexcept;
  /// Writes the scaled frame to `image`, which is resized as needed. Throws Error for an empty
  /// frame or an impossible size.
  void to_rgb(const Frame& frame, const ScaleOptions& options, RgbImage& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns a copy of the image as a frame in the layout rgb24 with full range.
Frame to_frame(const RgbImage& image);

}  // namespace vfm::media
