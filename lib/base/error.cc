// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <system_error>

namespace vfm {

std::string errno_text(int err) {
  return std::generic_category().message(err);
}

}  // namespace vfm
