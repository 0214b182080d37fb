// A still picture as bytes: for reports, contact sheets, and services that look at frames. Reading
// them is Decoder's job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/colour/scaler.h"

namespace vfm::media {

/// A PNG file, lossless. The same bytes for the same image. Throws Error for an empty image.
std::string encode_png(const RgbImage& image);

/// A JPEG file: 8 bits, 4:2:0, BT.601 full range, as JFIF has it. `quality` is FFmpeg's qscale, 1
/// best to 31. The same bytes for the same image. Throws Error for an empty image.
std::string encode_jpeg(const RgbImage& image, int quality = 3);

}  // namespace vfm::media
