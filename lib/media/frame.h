// A decoded picture, as plain planes. The one type that media and curate share: curate sees it and
// never FFmpeg.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace vfm::media {

/// How the planes hold the picture. Everything else is converted on decode.
enum class PixelLayout {
  yuv420,    ///< planes Y (w x h), U and V (ceil(w/2) x ceil(h/2)), 8 bits
  yuv422,    ///< U and V (ceil(w/2) x h)
  yuv444,    ///< U and V (w x h)
  gray,      ///< Y only
  rgb24,     ///< one packed plane, R G B
};

/// Planes are borrowed from whatever `owner` keeps alive (a decoder's reference-counted buffer), so a
/// Frame is cheap to copy and safe to keep.
struct Frame {
  PixelLayout layout = PixelLayout::yuv420;
  int width = 0, height = 0;          ///< as stored: before rotation and pixel aspect
  const std::uint8_t* plane[3] = {};  ///< first byte of each plane
  int stride[3] = {};                 ///< bytes from row to row, may exceed the width
  bool full_range = false;            ///< luma 0..255 rather than 16..235
  std::int64_t pts = 0;               ///< presentation time in the stream's time base
  std::int64_t duration = 0;          ///< in the time base; 0 if unknown
  std::int64_t index = 0;             ///< 0, 1, 2... in presentation order
  bool key = false;
  std::shared_ptr<const void> owner;
};

}  // namespace vfm::media
