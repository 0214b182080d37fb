// SPDX-License-Identifier: Apache-2.0
#include "train/generation_facts.h"

namespace vfm::train {

Json generation_facts(const Recipe& recipe, const Dataset& data, const Json& sampling) {
  if (recipe.model.tokenizer()) return Json::object();  // there is nothing to draw with it alone
  const auto info = [&](const char* name) { return data.info().value(name, Json()); };
  const bool discrete = data.vocabulary() > 0;
  Json facts = {{"tokenizer", info("tokenizer")},
                {"text_encoder", info("text_encoder")},
                {"latent_scale", discrete ? Json() : data.scale().to_json()},
                {"trained", data.trained_sizes()}};
  if (!sampling.is_null()) facts["sampling"] = sampling;
  if (recipe.diffusion.text_padding > 0) {
    facts["text_padding"] = recipe.diffusion.text_padding;
    // Zero vectors alone are what a dropped text was. Where none is dropped, an empty prompt is
    // still what the model began with: the encoder's.
    facts["encode_empty"] = recipe.diffusion.text_dropout == 0;
  }
  return facts;
}

}  // namespace vfm::train
