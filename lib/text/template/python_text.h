// Inside lib/text only: functions of Python's strings and json module, for chat templates.
// Positions and lengths are in code points. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace vfm::text::jinja {

/// repr(): "'it\\'s'", "[1, None]", "{'a': True}", "1.5". Writes nothing for other kinds.
void append_repr(std::string& out, const Value& value);

/// repr() of a float: the shortest digits that read back as it.
std::string real_text(double value);

/// The style of json.dumps() in transformers' tojson.
struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent;  ///< of one level
  std::string between, after_key = ": ";
};
/// `run`: to refuse values that JSON lacks.
std::string to_json_text(const Value& value, const JsonStyle& style, Run& run);

/// Strips white space by str.isspace(), or the code points of `characters`.
std::string strip(std::string_view text, const std::string* characters, bool left, bool right);
/// The same as a part of `text`.
std::string_view stripped(std::string_view text, const std::string* characters, bool left,
                          bool right);

std::string upper_case(std::string_view text);
std::string title_case(std::string_view text);  ///< str.title()
std::string capitalized(std::string_view text);

/// str.split() and rsplit(): at `separator` or, if that is null, at white space; `most` cuts at
/// most, -1: all.
std::vector<std::string> split(std::string_view text, const std::string* separator,
                               std::int64_t most, bool from_right);
std::vector<std::string> split_lines(std::string_view text);
/// At most `most` times; -1: all.
std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                     std::int64_t most, Run& run);

/// The code points, each as a string.
std::vector<std::string_view> code_points(std::string_view text);

}  // namespace vfm::text::jinja
