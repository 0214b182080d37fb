// Names made safe to print: a file's name may hold characters that steer a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::cli {

/// `text` with '?' for each character that ends a line, steers a terminal, or turns the direction
/// of writing (steering_character(), base/utf8.h), and for each byte that is no UTF-8: a terminal
/// that expects another encoding obeys some of these.
std::string harmless(std::string_view text);

/// `text` without the middle of each word of more than 1 KiB, and of all that is more than 4 KiB:
/// no file has a longer name, and nobody reads more. Says how much is left out.
std::string shortened(std::string_view text);

}  // namespace vfm::cli
