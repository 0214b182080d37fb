// Inside lib/media only: reads the camera's orientation from EXIF data of picture files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vfm::media {

/// Returns the value 1 to 8 of the EXIF tag 0x0112 in a PNG, WebP or TIFF file. Returns 0 for other
/// files, and for files without the tag.
int exif_orientation(std::string_view file);

/// Converts the result of exif_orientation() to a flip left to right (`mirror`), followed by a
/// clockwise turn in degrees (`rotation`). If `orientation` is 0, returns false and changes
/// nothing.
bool split_orientation(int orientation, int& rotation, bool& mirror);

}  // namespace vfm::media
