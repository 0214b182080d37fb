// Reads the luma of a frame, as stored or reduced.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "media/frame.h"

namespace vfm::curate {

/// A rectangle of pixels. Column `right` and row `bottom` are outside the rectangle.
struct PixelArea {
  int left = 0, top = 0, right = 0, bottom = 0;

  int width() const { return right - left; }
  int height() const { return bottom - top; }
  friend bool operator==(const PixelArea&, const PixelArea&) = default;
};

/// A view of luma bytes that a frame or another buffer owns.
struct LumaPlane {
  const std::uint8_t* first = nullptr;
  std::ptrdiff_t stride = 0;
  int width = 0, height = 0;
  bool full_range = true;  ///< If true, black is 0 and white is 255, otherwise 16 and 235.

  const std::uint8_t* row(int y) const { return first + y * stride; }
  /// Converts a difference of full-range grey levels to this plane's range.
  int levels(int full) const { return full_range ? full : (full * 219 + 127) / 255; }
};

/// Returns the luma of an 8-bit frame. For packed RGB, copies the green channel to the buffer
/// `room` and returns the copy.
LumaPlane luma_plane(const media::Frame& frame, std::vector<std::uint8_t>& room);

/// A picture of means of `factor` x `factor` pixels, in full range. The shorter side has about 360
/// means. Remaining pixels at the right and bottom are dropped.
struct ReducedLuma {
  int factor = 1, width = 0, height = 0;
  std::vector<std::uint8_t> pixels;

  const std::uint8_t* row(int y) const {
    return pixels.data() + static_cast<std::ptrdiff_t>(y) * width;
  }
};
void reduce_luma(const LumaPlane& plane, ReducedLuma& out);

}  // namespace vfm::curate
