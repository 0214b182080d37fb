// Repairs JSON from a model or server, so that a parser accepts it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::text {

/// Returns `json`, in which U+FFFD replaces bytes that are not UTF-8, and surrogate escapes
/// (\ud83d) without their partner. Valid JSON is unchanged. Pure.
std::string mend_json(std::string_view json);

}  // namespace vfm::text
