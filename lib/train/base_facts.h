// What the model that a run begins from says about latents, texts and sampling, and fine-tuning
// keeps. Of our runs and checkpoints train.json says it (vfm-checkpoint(5)), of a diffusers
// pipeline its folders; a transformer alone knows only how large a latent it was made for.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/dit/dit.h"
#include "models/dit/edm.h"

namespace vfm::train {

/// The keys of a size in train.json.
inline constexpr std::array<const char*, 3> kExtents = {"frames", "height", "width"};

/// What is not known is empty, null or zero.
struct BaseFacts {
  std::optional<models::LatentScale> scale;  ///< in which it sees latents; already whitened
  std::array<int, 3> trained{};  ///< frames, height, width: the largest latent of its training
  Json tokenizer, text_encoder;  ///< as in train.json; null also: trained without text
  Json sampling;                 ///< how it is sampled
  bool encode_empty = true;      ///< whether a prompt without text went through the encoder
};

/// Of `train`, the train.json `what` of a run of ours whose network is `model`. Throws Error{usage}
/// for what cannot be.
BaseFacts facts_of_run(const Json& train, const models::NetworkConfig& model,
                       const std::string& what);

/// Of the pipeline `folder` whose transformer is `model`; parts of it that are not there are not
/// known. Throws Error{usage}, also for a pipeline of flow matching, which training here is not.
BaseFacts facts_of_pipeline(const std::string& folder, const models::NetworkConfig& model);

/// Sentences for a user about the parts that made these latents and texts, `data` (latents.json),
/// and differ from those of the model `init`. A pipeline's parts are compared by their weights.
/// What one of the two does not say is no difference.
std::vector<std::string> other_parts(const BaseFacts& base, const Json& data,
                                     const std::string& init);

}  // namespace vfm::train
