// SPDX-License-Identifier: Apache-2.0
#include "media/decode/orientation.h"

#include <cstddef>

namespace vfm::media {
namespace {

std::uint32_t number(std::string_view data, std::size_t at, std::size_t count, bool little) {
  if (at > data.size() || count > data.size() - at) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value = value << 8 | static_cast<std::uint8_t>(data[at + (little ? count - 1 - i : i)]);
  return value;
}

int tiff_orientation(std::string_view data) {
  const bool little = data.starts_with(std::string_view("II*\0", 4));
  if (!little && !data.starts_with(std::string_view("MM\0*", 4))) return 0;
  const std::size_t directory = number(data, 4, 4, little);
  const std::size_t entries = number(data, directory, 2, little);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (number(data, entry, 2, little) != 0x0112) continue;
    const std::uint32_t value = number(data, entry + 8, 2, little);
    return value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

// A chunk has a name and a length, then data. WebP pads the data to an even length.
std::string_view find_chunk(std::string_view file, bool png) {
  const std::string_view wanted = png ? "eXIf" : "EXIF";
  for (std::size_t at = png ? 8 : 12; at + 8 <= file.size();) {
    const std::size_t length = number(file, png ? at : at + 4, 4, !png);
    const std::string_view name = file.substr(png ? at + 4 : at, 4);
    if (name == wanted) return file.substr(at + 8, length);
    at += 8 + length + (png ? 4 : length % 2);
  }
  return {};
}

}  // namespace

int exif_orientation(std::string_view file) {
  const bool png = file.starts_with("\x89PNG");
  const bool webp = file.starts_with("RIFF") && file.size() > 12 && file.substr(8, 4) == "WEBP";
  if (!png && !webp) return tiff_orientation(file);
  std::string_view data = find_chunk(file, png);
  // Some writers of WebP keep the mark that a JPEG has before the data.
  if (data.starts_with(std::string_view("Exif\0\0", 6))) data.remove_prefix(6);
  return tiff_orientation(data);
}

bool split_orientation(int orientation, int& rotation, bool& mirror) {
  constexpr int kTurns[] = {0, 0, 0, 180, 180, 270, 90, 90, 270};
  if (orientation < 1 || orientation > 8) return false;
  rotation = kTurns[orientation];
  mirror = orientation == 2 || orientation == 4 || orientation == 5 || orientation == 7;
  return true;
}

}  // namespace vfm::media
