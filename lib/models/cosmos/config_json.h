// The configuration of a Cosmos tokenizer as a config.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/json_fwd.h"
#include "models/cosmos/config.h"
#include "models/dit/edm.h"

namespace vfm::models {

/// From a config.json whose omitted fields are filled in. `what` names it in errors. Throws
/// Error{usage} as CosmosConfig::validate(), and for other patches than Haar.
CosmosConfig cosmos_config_from_json(const Json& json, std::string_view what);
/// With _class_name. That of a continuous one has no statistics of latents: they are null.
Json cosmos_config_to_json(const CosmosConfig& config);

/// The statistics of the latents that a continuous tokenizer's config.json holds; none if it holds
/// none. Throws Error{usage} for what are no statistics of `latent_channels`.
std::optional<LatentScale> latent_statistics(const Json& config, std::string_view what);

/// The _class_name of a continuous tokenizer (diffusers), and of a discrete one (NVIDIA).
inline constexpr const char* kCosmosContinuous = "AutoencoderKLCosmos";
inline constexpr const char* kCosmosDiscrete = "CausalDiscreteVideoTokenizer";

}  // namespace vfm::models
