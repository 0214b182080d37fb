// SPDX-License-Identifier: Apache-2.0
#include "text/mend_json.h"

#include <charconv>
#include <optional>

#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr std::size_t kEscape = 6;  // The length of \u12ab.

/// Returns the code unit of an escape such as \u12ab at `at`, or nothing.
std::optional<unsigned> code_unit(std::string_view json, std::size_t at) {
  if (json.size() < at + kEscape || json.substr(at, 2) != "\\u") return std::nullopt;
  const char *const begin = json.data() + at + 2, *const end = json.data() + at + kEscape;
  unsigned unit = 0;
  const auto [stop, error] = std::from_chars(begin, end, unit, 16);
  return error == std::errc() && stop == end ? std::optional(unit) : std::nullopt;
}

}  // namespace

std::string mend_json(std::string_view json) {
  const std::string valid = valid_utf8(json);
  json = valid;
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    // The second character belongs to the escape, even if it is a backslash.
    std::size_t size = json[at] == '\\' ? 2 : 1;
    if (const auto unit = code_unit(json, at)) {
      size = kEscape;
      const bool first = *unit >= 0xd800 && *unit < 0xdc00;
      const auto next = first ? code_unit(json, at + kEscape) : std::nullopt;
      if (next && *next >= 0xdc00 && *next < 0xe000) {
        size = 2 * kEscape;
      } else if (*unit >= 0xd800 && *unit < 0xe000) {
        out += "\\ufffd";
        at += kEscape;
        continue;
      }
    }
    out += json.substr(at, size);
    at += size;
  }
  return out;
}

}  // namespace vfm::text
