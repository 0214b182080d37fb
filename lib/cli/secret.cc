// SPDX-License-Identifier: Apache-2.0
#include "cli/secret.h"

#include <cstdlib>

#include "base/error.h"

namespace vfm::cli {

std::string secret_from_environment(const std::string& variable, bool needed) {
  const char* found = std::getenv(variable.c_str());
  const std::string value = found ? found : "";
  if (value.empty() && needed) fail_usage("the environment variable '{}' has no key", variable);
  for (const char c : value)
    if (c <= ' ' || c > '~')
      fail_usage("the environment variable '{}' holds more than a key", variable);
  return value;
}

}  // namespace vfm::cli
