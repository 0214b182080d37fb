// What a checkpoint says about generation besides its weights: the keys of train.json that
// vfm-generate reads (vfm-checkpoint(5)).
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "train/dataset.h"
#include "train/recipe.h"

namespace vfm::train {

/// Of a model that `recipe` trains on `data`: what made latents and texts, the latents' scale and
/// sizes, and how prompts are filled up; of a tokenizer nothing. `sampling` is that of the model it
/// began from; null: none.
Json generation_facts(const Recipe& recipe, const Dataset& data, const Json& sampling);

}  // namespace vfm::train
