// The configuration of the diffusion transformer as diffusers' config.json. Apart from the model,
// so that the model needs no JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/dit/network.h"

namespace vfm::models {

/// The "_class_name" of each of architectures().
std::vector<std::string_view> network_class_names();

/// diffusers' config.json, "_class_name" included.
Json network_config_to_json(const NetworkConfig& config);

/// Unknown keys of diffusers are left out, not errors; keys that are absent have the defaults.
/// Throws Error{usage} for values that are no configuration.
NetworkConfig network_config_from_json(const Json& config);

}  // namespace vfm::models
