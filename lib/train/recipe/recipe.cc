// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe.h"

#include <algorithm>

#include "train/kind.h"

namespace vfm::train {

double Recipe::text_dropout() const {
  return kind_of(model.type).text_dropout(*this);
}

int Recipe::text_padding() const {
  return kind_of(model.type).text_padding(*this);
}

bool Recipe::takes_text() const {
  return kind_of(model.type).takes_text(model);
}

int Recipe::text_tokens(int of_sample) const {
  return std::max({1, of_sample, text_padding()});
}

DType Recipe::compute() const {
  return model.compute == "bf16" ? DType::bf16 : DType::f32;
}

int Recipe::packs_together() const {
  return parallel.pp > 1 ? std::max(1, data.micro_packs) : data.micro_packs;
}

data::PackingOptions DataRecipe::pack_options() const {
  data::PackingOptions options;
  options.tokens = tokens;
  options.window = window;
  return options;
}

DType OptimizerRecipe::moment_type() const {
  return moments == "bf16" ? DType::bf16 : DType::f32;
}

}  // namespace vfm::train
