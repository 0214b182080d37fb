// SPDX-License-Identifier: Apache-2.0
#include "io/remote/environment.h"

#include <cstdlib>

namespace vfm::io {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace vfm::io
