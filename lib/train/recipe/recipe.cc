// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe.h"

#include <algorithm>

namespace vfm::train {

double Recipe::text_dropout() const {
  return model.type == "autoregressive" ? autoregressive.text_dropout : diffusion.text_dropout;
}

int Recipe::text_padding() const {
  return model.type == "autoregressive" ? autoregressive.text_padding : diffusion.text_padding;
}

bool Recipe::takes_text() const {
  return model.type != "autoregressive" || !model.begun || model.decoder.text_embed_dim > 0;
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

DType ParallelRecipe::reduce_type() const {
  return reduce == "bf16" ? DType::bf16 : DType::f32;
}

DType OptimizerRecipe::moment_type() const {
  return moments == "bf16" ? DType::bf16 : DType::f32;
}

}  // namespace vfm::train
