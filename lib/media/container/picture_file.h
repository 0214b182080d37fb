// Writes still pictures as PNG and JPEG.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/colour/scaler.h"

namespace vfm::media {

/// Returns the bytes of a PNG file. Equal images give equal bytes. Throws Error for an empty image.
std::string encode_png(const RgbImage& image);

/// Returns the bytes of a JPEG file (JFIF): 8 bits, 4:2:0, BT.601 full range. `quality` is FFmpeg's
/// qscale, 1 (best) to 31. Equal images give equal bytes. Throws Error for an empty image.
std::string encode_jpeg(const RgbImage& image, int quality = 3);

}  // namespace vfm::media
