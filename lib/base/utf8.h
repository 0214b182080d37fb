// Bytes that are text, and bytes that are not: names of files may hold any byte but '/' and NUL,
// records and pages hold UTF-8.
//
// The rule of the house: what a record names has a name in UTF-8. An input with another name is
// skipped and recorded (io/manifest.h), an output with one is refused (cli/runner.h): a name
// changed on its way into JSON would be the name of nothing, or of another file.
// Not here: what characters mean (text/unicode.h).
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vfm {

/// How many bytes of `text`, which is not empty, are its first character; 0: they are none. As the
/// Unicode standard has it (table 3-7): no surrogates, nothing overlong.
std::size_t utf8_character(std::string_view text);
bool is_utf8(std::string_view text);

/// `text` with each byte that is none as \xE9: no two names become one.
std::string with_bytes_shown(std::string_view text);
/// Of a name that is no UTF-8: says so, with the bytes that are none as \xE9, and what to do.
std::string no_utf8_message(std::string_view name);

/// The number of the first character of `text`, which is one: 0x202e of U+202E.
unsigned character_number(std::string_view text);

/// How many bytes of `text` are a first character that is nothing but a mark by which the direction
/// of writing turns: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069; 0: it is none.
std::size_t turning_character(std::string_view text);

/// The same of one that ends a line, steers a terminal or turns the direction of writing: controls
/// (C0, DEL, C1), U+2028, U+2029, and those above.
std::size_t steering_character(std::string_view text);

}  // namespace vfm
