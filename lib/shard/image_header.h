// Reads size and mode of a picture from the first bytes of a JPEG, PNG or WebP file, without
// decoding. Sources: ITU-T T.81 B.2.2, W3C PNG 11.2.2, RFC 9649 (WebP container).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfm::shard {

struct ImageHeader {
  int width = 0, height = 0;  ///< Stored size in pixels, before any EXIF rotation.
  std::string format;         ///< Pillow's name of the format: "JPEG", "PNG", "WEBP".
  std::string mode;           ///< Pillow's mode: "RGB", "L", "RGBA", "P", "LA", "CMYK", "1",
                              ///< "I;16".
};

/// Returns nullopt if the file is not JPEG, PNG or WebP, or if its header is damaged.
std::optional<ImageHeader> read_image_header(std::string_view bytes);

}  // namespace vfm::shard
