// What a checkpoint holds for generation besides its weights: the keys of train.json that
// vfm-generate reads (vfm-checkpoint(5)).
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "train/base_facts.h"
#include "train/dataset.h"
#include "train/recipe.h"

namespace vfm::train {

/// Of a model that `recipe` trains on `data`: what made latents and texts, the latents' scale and
/// sizes, and how prompts are filled up; of a tokenizer nothing. What it began from, `base`,
/// decides how it is sampled, and adds the sizes of its own training.
Json generation_facts(const Recipe& recipe, const Dataset& data, const BaseFacts& base);

}  // namespace vfm::train
