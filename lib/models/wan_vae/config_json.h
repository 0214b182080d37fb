// The configuration of Wan's video autoencoder as a config.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/json_fwd.h"
#include "models/process/latent_scale.h"
#include "models/wan_vae/config.h"

namespace vfm::models {

/// Reads a config.json. Missing fields have defaults. `what` names the file in errors. Throws what
/// WanVaeConfig::validate() throws, and Error{usage} for fields of another type, for attention in
/// levels, which no published model has, and for factors that are not those of the levels.
WanVaeConfig wan_vae_config_from_json(const Json& json, std::string_view what);

/// The statistics of the latents, latents_mean and latents_std; none if either is missing. Throws
/// Error{usage} unless each has a number per latent channel.
std::optional<LatentScale> wan_vae_statistics(const Json& json, std::string_view what);

}  // namespace vfm::models
