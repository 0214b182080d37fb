// A number with its noun, in the singular or plural, for messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/format.h"

namespace vfm {

/// "1 token", "3 tokens". `several`: the plural, if it is not the singular with an s.
inline std::string counted(std::int64_t count, std::string_view one,
                           std::string_view several = "") {
  if (count != 1 && !several.empty()) return vfm::format("{} {}", count, several);
  return vfm::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// The verb that follows: "1 token is", "3 tokens are".
constexpr std::string_view is_or_are(std::int64_t count) {
  return count == 1 ? "is" : "are";
}

}  // namespace vfm
