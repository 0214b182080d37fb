// Reads a secret from the environment, since every process can see arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::cli {

/// Returns the value of the environment variable, or "" if it is not set and not `needed`. Throws
/// Error{usage}, which does not show the value, if the variable is needed and not set, or has
/// characters that keys cannot have.
std::string secret_from_environment(const std::string& variable, bool needed);

}  // namespace vfm::cli
