// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include "base/format.h"

namespace vfm {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
}

/// The length of a character by its first byte, and the range of its second byte.
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

std::string with_bytes_shown(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    if (bytes == 0)
      shown += vfm::format("\\x{:02X}", byte_at(text, 0));
    else
      shown += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

std::string no_utf8_message(std::string_view name) {
  return "the name '" + with_bytes_shown(name) +
         "' is not in UTF-8, as names in records must be; rename it";
}

unsigned character_number(std::string_view text) {
  const std::size_t bytes = utf8_character(text);
  const unsigned first = byte_at(text, 0);
  unsigned number = bytes < 2 ? first : first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i)
    number = number << 6 | (byte_at(text, i) & 0x3fU);
  return number;
}

std::size_t turning_character(std::string_view text) {
  const std::size_t bytes = utf8_character(text);
  const unsigned number = character_number(text);
  const bool turns = number == 0x061c || number == 0x200e || number == 0x200f ||
                     (number >= 0x202a && number <= 0x202e) ||
                     (number >= 0x2066 && number <= 0x2069);
  return turns ? bytes : 0;
}

std::size_t steering_character(std::string_view text) {
  const std::size_t bytes = utf8_character(text);
  const unsigned number = character_number(text);
  const bool control = number < 0x20 || (number >= 0x7f && number <= 0x9f);
  const bool line = number == 0x2028 || number == 0x2029;
  return control || line ? bytes : turning_character(text);
}

}  // namespace vfm
