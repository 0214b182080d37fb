// Writes still pictures as PNG and JPEG. Equal images give equal bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/colour/scaler.h"

namespace vfm::media {

/// Returns the bytes of a PNG file. Throws Error for an empty image.
std::string encode_png(const RgbImage& image);

/// Returns the bytes of a JPEG file (JFIF): 8 bits, 4:2:0, BT.601 full range. `quality` is FFmpeg's
/// qscale, 1 (best) to 31. Throws Error for an empty image.
std::string encode_jpeg(const RgbImage& image, int quality = 3);

}  // namespace vfm::media
