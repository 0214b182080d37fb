// Names made safe to print: a file's name may hold characters that steer a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::cli {

/// `text` with '?' for each character that ends a line, steers a terminal, or turns the direction
/// of writing: controls (C0, DEL, C1), U+2028, U+2029, U+202A to U+202E, U+2066 to U+2069.
std::string harmless(std::string_view text);

}  // namespace vfm::cli
