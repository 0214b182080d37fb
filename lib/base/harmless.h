// Makes names safe to print: a file's name may have characters that control a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm {

/// Returns `text` with '?' for each character that ends a line, controls a terminal, or turns the
/// direction of writing (steering_character(), base/utf8.h). Bytes that are not UTF-8 become '?',
/// too, since a terminal with another encoding may obey them.
std::string harmless(std::string_view text);

/// Returns `text` without the middle of each word above 1 KiB, and without the middle of a text
/// above 4 KiB. The result states how much is left out.
std::string shortened(std::string_view text);

}  // namespace vfm
