// Parts of a text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm {

/// Returns how often `part` occurs in `text`.
inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

/// Returns `text` with `now` in place of each `part`. `now` must not contain `part`.
inline std::string replaced(std::string text, const std::string& part, const std::string& now) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;)
    text.replace(at, part.size(), now);
  return text;
}

}  // namespace vfm
