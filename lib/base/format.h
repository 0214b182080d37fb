// Formats values as std::format does: format("{} of {:.1f} s", name, 2.5).
//
// format() uses {fmt} if the build has it (VFM_HAVE_FMT), and otherwise base/format_plain.h, so
// that the compute core needs no library. Both check the pattern at compile time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if VFM_HAVE_FMT
#include <fmt/core.h>
#else
#include <array>
#include <span>

#include "base/format_plain.h"
#endif

#include <string>
#include <string_view>
#include <utility>

namespace vfm {

// FormatString is a pattern that is checked at compile time. Functions that take FormatValues need
// not be templates.
#if VFM_HAVE_FMT
template <class... Args>
using FormatString = fmt::format_string<Args...>;
using FormatValues = fmt::format_args;
template <class... Args>
auto format_values(const Args&... args) {
  return fmt::make_format_args(args...);
}
template <class Pattern>
std::string_view text_of(const Pattern& pattern) {
  const fmt::string_view text = pattern;
  return {text.data(), text.size()};
}
#else
template <class... Args>
using FormatString = plain::FormatString<Args...>;
using FormatValues = std::span<const plain::Argument>;
template <class... Args>
std::array<plain::Argument, sizeof...(Args)> format_values(const Args&... args) {
  return {plain::argument(args)...};
}
template <class Pattern>
std::string_view text_of(const Pattern& pattern) {
  return pattern.text;
}
#endif

std::string format_checked(std::string_view pattern, FormatValues values);

template <class... Args>
std::string format(FormatString<Args...> pattern, Args&&... args) {
  return format_checked(text_of(pattern), format_values(args...));
}

}  // namespace vfm
