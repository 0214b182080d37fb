// Inside lib/media only: reads the camera's orientation from EXIF data of picture files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vfm::media {

/// Returns EXIF's tag 0x0112, 1 to 8, of a PNG (chunk eXIf), WebP (chunk EXIF) or TIFF file.
/// Returns 0 for other files, and for files without the tag.
int exif_orientation(std::string_view file);

/// Converts a tag to a flip left to right (`mirror`), followed by a clockwise turn (`rotation`). If
/// `orientation` is 0, returns false and changes nothing.
bool split_orientation(int orientation, int& rotation, bool& mirror);

}  // namespace vfm::media
