// How a pipeline of diffusers is sampled: by its scheduler, the pipeline's own defaults, and the
// scale in which its network sees latents. Thread-safety: pure, but for reading the file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/folder/model_facts.h"

namespace vfm::models {

/// Of scheduler_config.json in `folder`, an EDMEulerScheduler or, if the sampler is "flow", a
/// FlowMatchEulerDiscreteScheduler. Throws Error{usage} for another scheduler, for settings of
/// these two that there are not, saying which there are, and for values that are of another type,
/// or nothing can be sampled with.
SamplingFacts hf_sampling(const std::string& folder);

/// By the statistics of the tokenizer `vae`, its config.json, which `what` names; without any, mean
/// 0 and deviation 1. Latents of flow matching have unit variance, others sigma_data. Throws Error.
LatentScale hf_latent_scale(const Json& vae, bool flow, std::string_view what);

}  // namespace vfm::models
