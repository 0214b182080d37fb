// Text from a pattern and values, as std::format writes it: format("{} of {:.1f} s", name, 2.5).
//
// Written by {fmt} where the build has it (VFM_HAVE_FMT), else by base/format_plain.h, so that the
// compute core needs no library. Both check the pattern when the call is compiled. Files that only
// the full build has may use {fmt} directly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if VFM_HAVE_FMT
#include <fmt/format.h>
#else
#include "base/format_plain.h"
#endif

#include <string>
#include <utility>

namespace vfm {

#if VFM_HAVE_FMT
template <class... Args>
using FormatString = fmt::format_string<Args...>;
template <class... Args>
std::string format(FormatString<Args...> pattern, Args&&... args) {
  return fmt::format(pattern, std::forward<Args>(args)...);
}
#else
template <class... Args>
using FormatString = plain::FormatString<Args...>;
template <class... Args>
std::string format(FormatString<Args...> pattern, Args&&... args) {
  return plain::format_arguments(pattern.text, {plain::argument(args)...});
}
#endif

}  // namespace vfm
