// Validates UTF-8. A file's name may have any byte but '/' and NUL, while records and pages are
// UTF-8.
//
// An input whose name is not UTF-8 is skipped and recorded (io/manifest.h). An output whose name is
// not UTF-8 is refused (cli/runner.h).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vfm {

/// Returns the number of bytes of the first character of a non-empty `text`. Returns 0 if the
/// character is invalid by the Unicode standard (table 3-7: no surrogates, no overlong forms).
std::size_t utf8_character(std::string_view text);
bool is_utf8(std::string_view text);

/// Returns `text` with each invalid byte in hexadecimal (\xE9), so that names that differ only in
/// such bytes stay different.
std::string with_bytes_shown(std::string_view text);
/// Returns an error message for a name that is not UTF-8. The message shows invalid bytes as \xE9,
/// and says what to do.
std::string no_utf8_message(std::string_view name);

/// Returns the code point of the first character of `text`, which must be valid: 0x202e for U+202E.
unsigned character_number(std::string_view text);

/// Returns the number of bytes of the first character of `text` if this character changes the
/// direction of writing: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. Otherwise
/// returns 0.
std::size_t turning_character(std::string_view text);

/// Returns the number of bytes of the first character of `text` if this character ends a line,
/// controls a terminal or changes the direction of writing. Otherwise returns 0. These characters
/// do so: controls (C0, DEL, C1), U+2028, U+2029, and the characters of turning_character().
std::size_t steering_character(std::string_view text);

}  // namespace vfm
