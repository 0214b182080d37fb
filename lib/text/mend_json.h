// JSON that a model or a server wrote, so that it can be parsed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::text {

/// `json` with U+FFFD for what is not UTF-8, and for an escape that is half of a character: a
/// surrogate (\ud83d) without the other one. Models write such where they stop inside a character,
/// and no parser takes them. What is JSON already stays as it is. Pure.
std::string mend_json(std::string_view json);

}  // namespace vfm::text
