// The configuration of a Cosmos tokenizer as a config.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/json_fwd.h"
#include "models/cosmos/config.h"
#include "models/process/latent_scale.h"

namespace vfm::models {

/// Reads a config.json. Missing fields have defaults. `what` names the file in errors. Throws what
/// CosmosConfig::validate() throws, and Error{usage} for patches other than Haar.
CosmosConfig cosmos_config_from_json(const Json& json, std::string_view what);
/// Writes a config.json with _class_name. The statistics of a continuous tokenizer's latents are
/// null.
Json cosmos_config_to_json(const CosmosConfig& config);

/// The statistics of the latents in a continuous tokenizer's config.json; none if it has none.
/// Throws Error{usage} for values that are not statistics of `latent_channels` channels.
std::optional<LatentScale> latent_statistics(const Json& config, std::string_view what);

/// The _class_name of a continuous tokenizer (diffusers), and of a discrete one (NVIDIA).
inline constexpr const char* kCosmosContinuous = "AutoencoderKLCosmos";
inline constexpr const char* kCosmosDiscrete = "CausalDiscreteVideoTokenizer";

}  // namespace vfm::models
