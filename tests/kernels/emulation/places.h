// Names of functions and lines of source for addresses in this program, as binutils' addr2line
// tells them. Without it an address stays a number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm::emulation {

/// From the beginning of the program: the same however it is loaded.
std::uint32_t offset_of(const void* code);

struct Place {
  std::string function;  ///< without namespaces and parameters
  std::string line;      ///< "file:line", and behind " < " where that was inlined
};
/// Of code at these offsets.
std::vector<Place> describe(const std::vector<std::uint32_t>& offsets);

}  // namespace vfm::emulation
