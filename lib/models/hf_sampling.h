// How a pipeline of diffusers is sampled: its scheduler, and the pipeline's own defaults.
// Source of the defaults: diffusers' pipeline_cosmos_text2world.py.
// Thread-safety: pure, but for reading the file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"

namespace vfm::models {

/// Tokens that Cosmos fills its texts up to, with zero vectors that are attended to.
inline constexpr int kCosmosTextTokens = 512;

/// Of scheduler_config.json in `folder`, an EDMEulerScheduler or a FlowMatchEulerDiscreteScheduler:
/// {"steps":36,"guidance":7,"sampler":...}, and "sigma_min" and "sigma_max", or "shift" if the
/// sampler is "flow". It is "sampling" in train.json (vfm-checkpoint(5)). Throws Error{usage} for
/// another scheduler, and for settings of these two that there are not, saying which there are.
Json hf_sampling(const std::string& folder);

}  // namespace vfm::models
