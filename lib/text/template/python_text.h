// Functions of Python's strings and json module for chat templates. Positions and lengths are in
// code points. Only for lib/text. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace vfm::text::jinja {

/// Appends repr() of a value: "'it\\'s'", "[1, None]", "{'a': True}", "1.5". Appends nothing for
/// other kinds.
void append_repr(std::string& out, const Value& value);

/// Returns repr() of a float: the shortest digits that give the same float.
std::string real_text(double value);

/// The style of json.dumps() in transformers' tojson.
struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent;  ///< Indent of one level.
  std::string between, after_key = ": ";
};
/// Returns the value as JSON. Throws Error{usage} for values that JSON lacks.
std::string to_json_text(const Value& value, const JsonStyle& style, Run& run);

/// Removes white space (by str.isspace()), or the code points of `characters`, from the left or
/// right end.
std::string strip(std::string_view text, const std::string* characters, bool left, bool right);
/// Does the same as strip(), and returns a part of `text`.
std::string_view stripped(std::string_view text, const std::string* characters, bool left,
                          bool right);

std::string upper_case(std::string_view text);
std::string title_case(std::string_view text);  ///< Returns str.title().
std::string capitalized(std::string_view text);

/// Splits like str.split() and rsplit() at `separator`, or at white space if `separator` is null.
/// `most` is the largest number of splits, or -1 for no limit.
std::vector<std::string> split(std::string_view text, const std::string* separator,
                               std::int64_t most, bool from_right);
std::vector<std::string> split_lines(std::string_view text);
/// Replaces `old` at most `most` times, or everywhere if `most` is -1.
std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                     std::int64_t most, Run& run);

/// Returns the code points, each as a string.
std::vector<std::string_view> code_points(std::string_view text);

}  // namespace vfm::text::jinja
