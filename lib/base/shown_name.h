// What messages, logs and records show of a name. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm {

/// Returns a path unchanged, and an address without what may be a secret: the user and password
/// before an @ become "...", and so does all from a ? or # on. Keys of buckets may have ? and #.
std::string shown_name(std::string_view name);

}  // namespace vfm
