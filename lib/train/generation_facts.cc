// SPDX-License-Identifier: Apache-2.0
#include "train/generation_facts.h"

#include <algorithm>

namespace vfm::train {
namespace {

/// What the recipe says goes before what the model began with; null where neither says anything.
Json sampling_of(const SamplingRecipe& recipe, Json sampling) {
  if (recipe.steps > 0) sampling["steps"] = recipe.steps;
  if (recipe.guidance >= 0) sampling["guidance"] = recipe.guidance;
  if (recipe.sigma_min > 0) sampling["sigma_min"] = recipe.sigma_min;
  if (recipe.sigma_max > 0) sampling["sigma_max"] = recipe.sigma_max;
  return sampling;
}

}  // namespace

Json generation_facts(const Recipe& recipe, const Dataset& data, const BaseFacts& base) {
  Json facts = data.facts();
  if (facts.empty()) return facts;
  // Positions lie as far apart as in the base: its sizes have not been forgotten.
  Json& trained = facts["trained"];
  for (std::size_t i = 0; i < 3; ++i)
    trained[kExtents[i]] = std::max(trained[kExtents[i]].get<int>(), base.trained[i]);
  if (const Json sampling = sampling_of(recipe.sampling, base.sampling); !sampling.is_null())
    facts["sampling"] = sampling;
  if (recipe.diffusion.text_padding > 0) {
    facts["text_padding"] = recipe.diffusion.text_padding;
    // Zero vectors alone are what a dropped text was. Where none is dropped, an empty prompt is
    // still what the model began with: the encoder's.
    facts["encode_empty"] = recipe.diffusion.text_dropout == 0 && base.encode_empty;
  }
  return facts;
}

}  // namespace vfm::train
