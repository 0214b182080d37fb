// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

namespace vfm {

std::string format_checked(std::string_view pattern, FormatValues values) {
#if VFM_HAVE_FMT
  return fmt::vformat(pattern, values);
#else
  return plain::format_arguments(pattern, values);
#endif
}

}  // namespace vfm
