// The variables of the environment that io/ reads: those of AWS and MSC, and VFM_.... Only cli/ and
// this file read variables. Thread-safety: any thread, while no thread sets variables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace vfm::io {

/// Returns a variable of the environment, or nullopt if it is unset or empty.
std::optional<std::string> variable(const char* name);

}  // namespace vfm::io
