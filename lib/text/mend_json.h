// Mends JSON of a model or a server, so that it can be parsed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::text {

/// `json` with U+FFFD for bytes that are not UTF-8, and for an escape that is half a character: a
/// surrogate (\ud83d) without its partner. Models write these when they stop inside a character,
/// and no parser takes them. Valid JSON is unchanged. Pure.
std::string mend_json(std::string_view json);

}  // namespace vfm::text
