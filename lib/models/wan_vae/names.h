// Names of tensors in files of Wan's video autoencoder: those of diffusers' AutoencoderKLWan, and
// those of the authors (Wan2.1_VAE.pth, Wan2.2_VAE.pth), which other programs have kept.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::models {

class NamedShapes;

inline constexpr std::string_view kWanVaeClass = "AutoencoderKLWan";

/// Changes the authors' names to diffusers'; leaves names as they are if they are not the
/// authors'. Other names in a file, such as of a model's other parts, stay as they are.
void rename_wan_vae(std::vector<std::string>& names);
/// Returns whether names are the authors'.
bool are_wan_vae_names(const std::vector<std::string>& names);

/// The defaults of diffusers' AutoencoderKLWan for a config.json, without the statistics.
Json wan_vae_defaults();
/// Adds the statistics of the published network that has so many latent channels, if there is one
/// and `config` has none.
void add_wan_vae_statistics(Json& config);
/// The configuration of a network with tensors of these shapes, under diffusers' names. Throws
/// Error{usage} if they do not make such a network.
Json wan_vae_config_of(const NamedShapes& shapes);

}  // namespace vfm::models
