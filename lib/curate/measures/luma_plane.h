// The luma of a frame, as stored or reduced, for measures of full pictures.
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "media/frame.h"

namespace vfm::curate {

/// The pixels from `left`, `top` up to, but not including, `right`, `bottom`.
struct PixelArea {
  int left = 0, top = 0, right = 0, bottom = 0;

  int width() const { return right - left; }
  int height() const { return bottom - top; }
  friend bool operator==(const PixelArea&, const PixelArea&) = default;
};

/// Borrowed bytes, row after row.
struct LumaPlane {
  const std::uint8_t* first = nullptr;
  std::ptrdiff_t stride = 0;
  int width = 0, height = 0;
  bool full_range = true;  ///< false: black is 16 and white is 235

  const std::uint8_t* row(int y) const { return first + y * stride; }
  /// Converts a difference of full-range grey levels to this plane's range.
  int levels(int full) const { return full_range ? full : (full * 219 + 127) / 255; }
};

/// Returns a frame's luma, 8 bits only. For packed RGB, returns the green channel, copied to
/// `room`.
LumaPlane luma_plane(const media::Frame& frame, std::vector<std::uint8_t>& room);

/// Means of `factor` x `factor` pixels, in full range; the shorter side has about 360 means. Pixels
/// left over at the right and the bottom are dropped.
struct ReducedLuma {
  int factor = 1, width = 0, height = 0;
  std::vector<std::uint8_t> pixels;

  const std::uint8_t* row(int y) const {
    return pixels.data() + static_cast<std::ptrdiff_t>(y) * width;
  }
};
void reduce_luma(const LumaPlane& plane, ReducedLuma& out);

}  // namespace vfm::curate
