// Reads option values. A value is TEXT, or @FILE for the text of a file. "@@TEXT" is a text that
// begins with "@".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Returns the text of a file without its final line ends. Throws Error{usage} if the file cannot
/// be read, is not a regular file, is empty, or is larger than 1 MiB.
std::string option_file(const std::string& path);
/// Returns the text of an option's `value`. For @FILE, returns option_file(FILE).
std::string text_or_file(const std::string& value);

}  // namespace vfm::io
