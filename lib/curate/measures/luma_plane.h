// The luma of a picture for measures of full pictures: as it is stored, and made smaller.
//
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "media/frame.h"

namespace vfm::curate {

/// Pixels from `left`, `top` on up to, not with, `right`, `bottom`.
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
  bool full_range = true;  ///< else black is 16 and white is 235

  const std::uint8_t* row(int y) const { return first + y * stride; }
  /// Converts a difference of grey levels of 255 to this plane's scale.
  int levels(int full) const { return full_range ? full : (full * 219 + 127) / 255; }
};

/// For packed RGB its green, copied to `room`. 8 bits only.
LumaPlane luma_plane(const media::Frame& frame, std::vector<std::uint8_t>& room);

/// Means of squares of `factor` by `factor` pixels, so that the shorter side has about 360; full
/// range. The rest at the right and the bottom is left out.
struct ReducedLuma {
  int factor = 1, width = 0, height = 0;
  std::vector<std::uint8_t> pixels;

  const std::uint8_t* row(int y) const {
    return pixels.data() + static_cast<std::ptrdiff_t>(y) * width;
  }
};
void reduce_luma(const LumaPlane& plane, ReducedLuma& out);

}  // namespace vfm::curate
