// Makes names safe to print, since a file's name may have characters that control a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm {

/// Returns `text` with '?' for each character that ends a line, controls a terminal, or changes the
/// direction of writing (steering_character(), base/utf8.h). Bytes that are not UTF-8 also become
/// '?'.
std::string harmless(std::string_view text);

/// Returns `text` with at most 1 KiB of each word and at most 4 KiB in all. The middle of a longer
/// word or text is left out; the result states how many bytes are missing.
std::string shortened(std::string_view text);

}  // namespace vfm
