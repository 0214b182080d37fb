// SPDX-License-Identifier: Apache-2.0
#include "base/harmless.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace vfm {

std::string harmless(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    if (bytes == 0 || steering_character(text) > 0)
      result += '?';
    else
      result += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

namespace {

/// Returns where the character at `at` begins.
std::size_t whole_to(std::string_view text, std::size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
    --at;
  return at;
}

std::string without_middle(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::size_t begin = whole_to(text, most * 3 / 4);
  const std::size_t end = whole_to(text, text.size() - most / 4);
  return fmt::format("{} [... {} bytes ...] {}", text.substr(0, begin), end - begin,
                     text.substr(end));
}

}  // namespace

std::string shortened(std::string_view text) {
  constexpr std::size_t kWord = 1024, kText = 4096;
  if (text.size() <= kWord) return std::string(text);
  std::string out;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find(' ', begin + 1), text.size());
    out += without_middle(text.substr(begin, end - begin), kWord);
  }
  return without_middle(out, kText);
}

}  // namespace vfm
