// SPDX-License-Identifier: Apache-2.0
#include "dist/rank_words.h"

#include <algorithm>
#include <cstddef>

#include "base/format.h"

namespace vfm::dist {

std::string rank_words(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < ranks.size();) {
    std::size_t end = at + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    if (end - at > 1)
      parts.push_back(vfm::format("{}-{}", ranks[at], ranks[end - 1]));
    else
      parts.push_back(std::to_string(ranks[at]));
    at = end;
  }
  if (parts.empty()) return "no rank";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace vfm::dist
