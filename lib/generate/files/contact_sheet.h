// One picture of many clips. Each clip is a strip of its first, middle and last frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "media/colour/scaler.h"

namespace vfm::generate {

/// Decodes the clips and arranges their strips in rows on a sheet about as wide as high. A clip
/// that cannot be decoded leaves its place empty. Shows at most `most` clips.
media::RgbImage contact_sheet(const std::vector<std::string>& clips, std::size_t most = 100);

}  // namespace vfm::generate
