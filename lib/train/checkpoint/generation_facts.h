// What a checkpoint holds for generation besides its weights: the keys of train.json that
// vfm-generate reads (vfm-checkpoint(5)); and how that fits what the run began from.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/folder/model_facts.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// Of a model that `recipe` trains on `data`: what made latents and texts, the latents' scale and
/// sizes, and how prompts are filled up; of a tokenizer nothing. What it began from, `base`,
/// decides how it is sampled, and adds the sizes of its own training.
Json generation_facts(const Recipe& recipe, const Dataset& data, const models::ModelFacts& base);

/// Sentences for a user about what made these latents and texts, `data` (latents.json), and differs
/// from what made those of the model `init`. Of a pipeline's parts the weights are compared. What
/// one of the two does not say is no difference.
std::vector<std::string> other_parts(const models::ModelFacts& base, const Json& data,
                                     const std::string& init);

}  // namespace vfm::train
