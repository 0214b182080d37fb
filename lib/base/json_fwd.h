// Parses and writes JSON, and reads members. Errors name the file and the field. The header only
// declares the type Json; base/json.h defines it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace vfm {

using Json = nlohmann::ordered_json;

/// Parses one JSON document. The error names `what` ("line 3 of 'a.jsonl'"). Refuses more than 100
/// levels of nesting and objects of more than a million names, against hostile input. If a name is
/// repeated, the last value is used. Throws Error.
Json parse_json(std::string_view text, std::string_view what);

/// Writes JSON as one line of UTF-8 without spaces. Never throws. Invalid UTF-8 becomes U+FFFD.
std::string dump_json(const Json& value);
/// Writes JSON indented by two, with a final newline.
std::string dump_json_pretty(const Json& value);

/// Returns the value with the names of all its objects sorted by bytes.
Json sorted(Json value);

/// Returns member `name` of object `value`, or nullopt if the member is absent or null. Throws
/// Error if the member has a wrong type.
std::optional<std::string> get_string(const Json& value, const char* name);
std::optional<double> get_number(const Json& value, const char* name);
std::optional<std::int64_t> get_integer(const Json& value, const char* name);
std::optional<bool> get_bool(const Json& value, const char* name);

/// Returns the member as the get_ functions above do. If the member is absent or null, throws Error
/// "<what> has no '<name>'".
std::string need_string(const Json& value, const char* name, std::string_view what);
double need_number(const Json& value, const char* name, std::string_view what);
std::int64_t need_integer(const Json& value, const char* name, std::string_view what);

}  // namespace vfm
