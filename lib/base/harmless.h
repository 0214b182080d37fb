// Names made safe to print: a file's name may hold characters that steer a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm {

/// `text` with '?' for each character that ends a line, steers a terminal, or turns the direction
/// of writing (steering_character(), base/utf8.h), and for each byte that is not UTF-8: a terminal
/// with another encoding may obey it.
std::string harmless(std::string_view text);

/// `text` without the middle of each word above 1 KiB, and of the whole above 4 KiB: no file has a
/// longer name, and nobody reads more. States how much is left out.
std::string shortened(std::string_view text);

}  // namespace vfm
