// How a pipeline of diffusers is sampled: its scheduler, the pipeline's own defaults, and the scale
// in which its network sees latents. Source of the defaults: diffusers'
// pipeline_cosmos_text2world.py. Thread-safety: pure, but for reading the file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "models/dit/edm.h"

namespace vfm::models {

/// Tokens that Cosmos fills its texts up to, with zero vectors that are attended to.
inline constexpr int kCosmosTextTokens = 512;

/// Of scheduler_config.json in `folder`, an EDMEulerScheduler or a FlowMatchEulerDiscreteScheduler:
/// {"steps":36,"guidance":7,"sampler":...}, and "sigma_min" and "sigma_max", or "shift" if the
/// sampler is "flow". It is "sampling" in train.json (vfm-checkpoint(5)). Throws Error{usage} for
/// another scheduler, for settings of these two that there are not, saying which there are, and for
/// values that are of another type, or nothing can be sampled with.
Json hf_sampling(const std::string& folder);

/// By the statistics of the tokenizer `vae`, its config.json, which `what` names; without any, mean
/// 0 and deviation 1. Latents of flow matching have unit variance, others sigma_data. Throws Error.
LatentScale hf_latent_scale(const Json& vae, bool flow, std::string_view what);

}  // namespace vfm::models
