// An option's text that may be long: it is given as TEXT, or as @FILE. "@@TEXT" is a text that
// begins with "@".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// The text in a file that an option names: its bytes without the line ends at its end. Throws
/// Error{usage} for a file that cannot be read, is no regular file, has no text or has more than
/// 1 MiB.
std::string option_file(const std::string& path);
/// The text of an option, from a file as option_file() reads it where the value says so.
std::string text_or_file(const std::string& value);

}  // namespace vfm::io
