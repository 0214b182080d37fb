// Converts the configuration of a diffusion network to and from diffusers' config.json. In a header
// of its own, so that networks need no JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/dit/foreign.h"
#include "models/dit/network.h"

namespace vfm::models {

/// Returns every "_class_name" of each of architectures().
std::vector<std::string_view> network_class_names();

/// Returns the quoted name of the field if `config` has a value that only ForeignField::otherwise
/// has; else "".
std::string other_value(const ForeignField& field, const Json& config);

/// Returns diffusers' config.json, with "_class_name".
Json network_config_to_json(const NetworkConfig& config);

/// Ignores unknown keys of diffusers. Absent keys get the defaults. Throws Error{usage} for invalid
/// values.
NetworkConfig network_config_from_json(const Json& config);

}  // namespace vfm::models
