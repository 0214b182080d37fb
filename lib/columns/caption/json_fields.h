// Fields of JSON objects by names with dots, as --from field:NAME has them.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace vfm::columns {

/// The field `name` of an object; null if absent or null. A member with exactly that name comes
/// first; else its dots lead into objects and lists, with indices from 0: "meta.captions.0".
const Json* find_field(const Json& object, const std::string& name);

}  // namespace vfm::columns
