// Reads size and mode of a picture from the first bytes of a JPEG, PNG or WebP file, without
// decoding.
// Sources: ITU-T T.81 B.2.2, W3C PNG 11.2.2, RFC 9649 (WebP container).
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfm::shard {

struct ImageHeader {
  int width = 0, height = 0;  ///< as stored, before any EXIF rotation
  std::string format;         ///< "JPEG", "PNG", "WEBP": Pillow's names
  std::string mode;           ///< "RGB", "L", "RGBA", "P", "LA", "CMYK", "1", "I;16": Pillow's
};

/// Returns nothing if the file has another format or a damaged header.
std::optional<ImageHeader> read_image_header(std::string_view bytes);

}  // namespace vfm::shard
