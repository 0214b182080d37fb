// The name of a JSON value, as base/json.h has it, for headers that hold none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace vfm {

using Json = nlohmann::ordered_json;

}  // namespace vfm
