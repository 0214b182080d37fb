// SPDX-License-Identifier: Apache-2.0
#include "io/packed.h"

namespace vfm::io {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr char kIsHash = 1, kIsText = 0;
constexpr std::size_t kHashBytes = 16;

}  // namespace

void put_hash(std::string& out, std::string_view text) {
  if (text.size() != 2 * kHashBytes ||
      text.find_first_not_of(kHexDigits) != std::string_view::npos) {
    out += kIsText;
    return put_text(out, text);
  }
  out += kIsHash;
  for (std::size_t i = 0; i < text.size(); i += 2)
    out += static_cast<char>(kHexDigits.find(text[i]) << 4 | kHexDigits.find(text[i + 1]));
}

std::string_view take_hash(std::string_view& rest) {
  const std::string_view all = rest;
  if (take_bytes(rest, 1)[0] == kIsHash)
    take_bytes(rest, kHashBytes);
  else
    take_text(rest);
  return all.substr(0, all.size() - rest.size());
}

std::string hash_text(std::string_view packed) {
  if (take_bytes(packed, 1)[0] == kIsText) return std::string(take_text(packed));
  std::string text;
  for (const char c : take_bytes(packed, kHashBytes)) {
    text += kHexDigits[static_cast<unsigned char>(c) >> 4];
    text += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace vfm::io
