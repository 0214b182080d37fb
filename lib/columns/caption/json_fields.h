// Finds nested fields of JSON objects by dotted names, for --from field:NAME.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace vfm::columns {

/// The field `name` of an object; null if it is absent or null. A member with exactly this name is
/// preferred. Otherwise each dot leads into an object, or into a list by index from 0:
/// "meta.captions.0".
const Json* find_field(const Json& object, const std::string& name);

}  // namespace vfm::columns
