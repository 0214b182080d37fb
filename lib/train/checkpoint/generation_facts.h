// The facts that a checkpoint holds for generation besides its weights: the keys of train.json that
// vfm-generate reads (vfm-checkpoint(5)), and how they fit the model that the run began from.
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

/// The facts of a model that `recipe` trains on `data`: tokenizer and text encoder, the latents'
/// scale and sizes, and padding of prompts. `base` are the facts of the model that the run began
/// from. They decide how the new model is sampled, and add the sizes that `base` was trained on.
/// Empty for a tokenizer.
Json generation_facts(const Recipe& recipe, const Dataset& data, const models::ModelFacts& base);

/// Sentences about tokenizer and text encoder of `data` (a latents.json) if they differ from those
/// of the model `init`, whose facts are `base`. Parts of a pipeline are compared by their weights.
/// A fact that one side does not state counts as equal.
std::vector<std::string> other_parts(const models::ModelFacts& base, const Json& data,
                                     const std::string& init);

}  // namespace vfm::train
