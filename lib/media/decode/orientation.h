// Inside lib/media only: the camera's orientation, from the EXIF data of picture files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vfm::media {

/// EXIF's tag 0x0112 of a PNG (chunk eXIf), WebP (chunk EXIF) or TIFF file: 1 to 8; 0 for other
/// files, or without the tag.
int exif_orientation(std::string_view file);

/// The same as a flip left to right before a turn clockwise. False, and nothing changed, for 0.
bool split_orientation(int orientation, int& rotation, bool& mirror);

}  // namespace vfm::media
