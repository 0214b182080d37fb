// SPDX-License-Identifier: Apache-2.0
#include "shard/image_header.h"

#include <cstdint>

namespace vfm::shard {
namespace {

/// Returns zeros behind the end. Damaged headers then give sizes of 0, which are refused below.
class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}
  int u8(std::size_t at) const {
    return at < data_.size() ? static_cast<unsigned char>(data_[at]) : 0;
  }
  int big16(std::size_t at) const { return u8(at) << 8 | u8(at + 1); }
  std::int64_t big32(std::size_t at) const { return std::int64_t{big16(at)} << 16 | big16(at + 2); }
  int little16(std::size_t at) const { return u8(at + 1) << 8 | u8(at); }
  int little24(std::size_t at) const { return u8(at + 2) << 16 | little16(at); }
  bool has(std::size_t at, std::string_view text) const {
    return at <= data_.size() && data_.substr(at).starts_with(text);
  }
  std::size_t size() const { return data_.size(); }

 private:
  std::string_view data_;
};

ImageHeader read_png(const Bytes& b) {
  static constexpr const char* modes[] = {"L", "", "RGB", "P", "LA", "", "RGBA"};
  const int depth = b.u8(24), colour = b.u8(25);
  const std::int64_t width = b.big32(16), height = b.big32(20);
  ImageHeader header;
  if (!b.has(12, "IHDR") || colour > 6 || width > 1 << 24 || height > 1 << 24) return header;
  header = {static_cast<int>(width), static_cast<int>(height), "PNG", modes[colour]};
  if (colour == 0 && depth == 1) header.mode = "1";
  if (colour == 0 && depth == 16) header.mode = "I;16";
  return header;
}

ImageHeader read_jpeg(const Bytes& b) {
  for (std::size_t at = 2; at + 9 < b.size();) {
    if (b.u8(at) != 0xff) return {};
    const int marker = b.u8(at + 1);
    if (marker == 0xff || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
      at += marker == 0xff ? 1 : 2;  // Skip fill bytes, and markers without a length.
      continue;
    }
    // Start of frame: C0 to CF without DHT (C4), JPG (C8) and DAC (CC).
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      const int parts = b.u8(at + 9);
      return {b.big16(at + 7), b.big16(at + 5), "JPEG",
              parts == 1   ? "L"
              : parts == 4 ? "CMYK"
                           : "RGB"};
    }
    if (b.big16(at + 2) < 2) return {};
    at += 2 + static_cast<std::size_t>(b.big16(at + 2));
  }
  return {};
}

ImageHeader read_webp(const Bytes& b) {
  if (b.has(12, "VP8X"))
    return {b.little24(24) + 1, b.little24(27) + 1, "WEBP", b.u8(20) & 0x10 ? "RGBA" : "RGB"};
  if (b.has(12, "VP8L") && b.u8(20) == 0x2f) {
    const std::int64_t bits = std::int64_t{b.little16(23)} << 16 | b.little16(21);
    return {static_cast<int>(bits & 0x3fff) + 1, static_cast<int>(bits >> 14 & 0x3fff) + 1, "WEBP",
            bits >> 28 & 1 ? "RGBA" : "RGB"};
  }
  if (b.has(12, "VP8 ") && b.has(23, "\x9d\x01\x2a"))
    return {b.little16(26) & 0x3fff, b.little16(28) & 0x3fff, "WEBP", "RGB"};
  return {};
}

}  // namespace

std::optional<ImageHeader> read_image_header(std::string_view bytes) {
  const Bytes b(bytes);
  ImageHeader header;
  if (b.has(0, "\x89PNG\r\n\x1a\n"))
    header = read_png(b);
  else if (b.has(0, "\xff\xd8\xff"))
    header = read_jpeg(b);
  else if (b.has(0, "RIFF") && b.has(8, "WEBP") && b.size() >= 30)
    header = read_webp(b);
  if (header.width <= 0 || header.height <= 0) return std::nullopt;
  return header;
}

}  // namespace vfm::shard
