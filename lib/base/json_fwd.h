// The name of a JSON value, for headers that hold none (base/json.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace vfm {

using Json = nlohmann::ordered_json;

}  // namespace vfm
