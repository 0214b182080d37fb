// Writes a number with its noun, in the singular or plural, for messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/format.h"

namespace vfm {

/// Returns "1 token" or "3 tokens". `several` is the plural; the default is the singular with an s.
inline std::string counted(std::int64_t count, std::string_view one,
                           std::string_view several = "") {
  if (count != 1 && !several.empty()) return vfm::format("{} {}", count, several);
  return vfm::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// Returns the verb for a number: "is" for 1, otherwise "are".
constexpr std::string_view is_or_are(std::int64_t count) {
  return count == 1 ? "is" : "are";
}

}  // namespace vfm
