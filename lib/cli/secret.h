// Reads a secret from the environment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::cli {

/// Returns the value of the environment variable. If the variable is not set, returns "", or throws
/// Error{usage} if `needed` is true. Throws Error{usage} if the value has characters that API keys
/// cannot have. The error does not show the value.
std::string secret_from_environment(const std::string& variable, bool needed);

}  // namespace vfm::cli
