// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include "base/format.h"

namespace vfm {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
}

/// How many bytes a character has that begins with this one, and what its second one may be.
struct Beginning {
  std::size_t bytes = 0;
  unsigned low = 0x80, high = 0xbf;
};
Beginning beginning_of(unsigned byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {};
  if (byte < 0xe0) return {2};
  if (byte < 0xf0) return {3, byte == 0xe0 ? 0xa0U : 0x80U, byte == 0xed ? 0x9fU : 0xbfU};
  if (byte < 0xf5) return {4, byte == 0xf0 ? 0x90U : 0x80U, byte == 0xf4 ? 0x8fU : 0xbfU};
  return {};
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  const Beginning beginning = beginning_of(byte_at(text, 0));
  if (beginning.bytes > text.size()) return 0;
  for (std::size_t i = 1; i < beginning.bytes; ++i) {
    const unsigned byte = byte_at(text, i);
    if (byte < (i == 1 ? beginning.low : 0x80U) || byte > (i == 1 ? beginning.high : 0xbfU))
      return 0;
  }
  return beginning.bytes;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string no_utf8_message(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const std::size_t bytes = utf8_character(name);
    if (bytes == 0)
      shown += format("\\x{:02X}", byte_at(name, 0));
    else
      shown += name.substr(0, bytes);
    name.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return "the name '" + shown + "' is not in UTF-8, as names in records must be; rename it";
}

std::size_t steering_character(std::string_view text) {
  const unsigned first = byte_at(text, 0), second = byte_at(text, 1), third = byte_at(text, 2);
  if (text.empty()) return 0;
  if (first < 0x20 || first == 0x7f) return 1;
  if (first == 0xc2 && second >= 0x80 && second <= 0x9f) return 2;
  if (first != 0xe2) return 0;
  const bool lines_and_turns = second == 0x80 && third >= 0xa8 && third <= 0xae;
  const bool isolates = second == 0x81 && third >= 0xa6 && third <= 0xa9;
  return lines_and_turns || isolates ? 3 : 0;
}

}  // namespace vfm
