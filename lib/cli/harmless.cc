// SPDX-License-Identifier: Apache-2.0
#include "cli/harmless.h"

namespace vfm::cli {
namespace {

/// Bytes of the character at the beginning of `text` if it does harm, else 0.
std::size_t harmful(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool lines_and_turns = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return lines_and_turns || isolates ? 3 : 0;
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = harmful(text);
    result += bytes > 0 ? '?' : text.front();
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return result;
}

}  // namespace vfm::cli
