// A still picture as bytes: for reports and contact sheets. Reading them is Decoder's job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/scaler.h"

namespace vfm::media {

/// A PNG file, lossless. The same bytes for the same image. Throws Error for an empty image.
std::string encode_png(const RgbImage& image);

}  // namespace vfm::media
