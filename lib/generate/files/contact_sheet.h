// One picture of many clips. Each clip is a strip of its first, middle and last frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vfm::generate {

/// How many clips a sheet shows.
inline constexpr std::size_t kShownClips = 100;

/// Writes a PNG of the first kShownClips clips, unless the file has these bytes. Their strips are
/// in rows on a sheet about as wide as high. A clip that cannot be decoded leaves its place empty.
/// Throws Error if the file cannot be written, or if vfm was built without FFmpeg.
void write_contact_sheet(const std::string& path, const std::vector<std::string>& clips);

}  // namespace vfm::generate
