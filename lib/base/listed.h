// Writes names one after the other, for messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace vfm {

/// Returns "a, b or c" for `last` " or ".
inline std::string listed(std::span<const std::string_view> names, std::string_view last) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) all += i + 1 == names.size() ? last : ", ";
    all += names[i];
  }
  return all;
}

}  // namespace vfm
