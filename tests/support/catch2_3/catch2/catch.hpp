// Catch2 3 under the name and with the names of Catch2 2, for systems that have no older one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_all.hpp>

namespace Catch {

inline Matchers::StringContainsMatcher Contains(
    const std::string& text, CaseSensitive case_sensitivity = CaseSensitive::Yes) {
  return Matchers::ContainsSubstring(text, case_sensitivity);
}
using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::StartsWith;

}  // namespace Catch
using Catch::Approx;
