// An option's text that may be long: it is given as TEXT, or as @FILE. "@@TEXT" is a text that
// begins with "@".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// The text. A file's text is its bytes without the line ends at its end. Throws Error{usage} for a
/// file that cannot be read, is no regular file, has no text or has more than 1 MiB.
std::string text_or_file(const std::string& value);

}  // namespace vfm::io
