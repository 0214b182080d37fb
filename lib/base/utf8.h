// Validates UTF-8. Names of files may have any byte but '/' and NUL; records and pages are UTF-8.
//
// If a name is not UTF-8, an input is skipped and recorded (io/manifest.h), and an output is
// refused (cli/runner.h). text/unicode.h has the meaning of characters.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vfm {

/// Returns the number of bytes of the first character of `text`, which is not empty, or 0 if the
/// character is not valid by the Unicode standard (table 3-7: no surrogates, nothing overlong).
std::size_t utf8_character(std::string_view text);
bool is_utf8(std::string_view text);

/// Returns `text` with each invalid byte shown as \xE9; distinct names stay distinct.
std::string with_bytes_shown(std::string_view text);
/// Returns the message for a name that is not UTF-8, with invalid bytes shown as \xE9, and what to
/// do.
std::string no_utf8_message(std::string_view name);

/// Returns the number of the first character of `text`, which must be valid: 0x202e for U+202E.
unsigned character_number(std::string_view text);

/// Returns the number of bytes of the first character of `text` if this character turns the
/// direction of writing: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. Otherwise
/// returns 0.
std::size_t turning_character(std::string_view text);

/// Returns the bytes of the first character if it ends a line, controls a terminal or turns the
/// direction of writing; otherwise 0. These are controls (C0, DEL, C1), U+2028, U+2029, and the
/// characters of turning_character().
std::size_t steering_character(std::string_view text);

}  // namespace vfm
