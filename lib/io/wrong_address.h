// What can be said of an address before any server is asked. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Returns what is wrong with an address of s3, http or https, such as a password in it, or "".
/// Returns "" for a path and for other addresses, also of msc, whose configuration may not be there
/// yet.
std::string wrong_address(const std::string& name);

}  // namespace vfm::io
