// Small models of every kind that is trained, with two samples, for the tests of their gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/tokenizer/clips.h"

namespace vfm::train {

inline constexpr const char* kNetworks =
    "model: {num_attention_heads: 2, attention_head_dim: 16, num_layers: 2, mlp_ratio: 2}\n"
    "data: {tokens: 256}\n";
inline constexpr const char* kTokenizers =
    "model: {type: tokenizer, latent_channels: 3, encoder_block_out_channels: [4, 6], "
    "decode_block_out_channels: [4, 6], num_layers: 1, patch_size: 2, "
    "spatial_compression_ratio: 2, temporal_compression_ratio: 2}\n"
    "data: {frames: 5, size: 16}\n";
inline constexpr const char* kCodes =
    "model: {type: autoregressive, num_attention_heads: 2, num_key_value_heads: 1, "
    "attention_head_dim: 16, num_layers: 2, mlp_ratio: 2}\n"
    "data: {tokens: 256}\n";

/// Two samples for the recipe, which is fitted to them.
inline std::vector<CleanSample> fitted_samples(Recipe& recipe) {
  std::vector<CleanSample> samples;
  if (recipe.model.type == "autoregressive") {
    recipe.model.decoder.vocabulary = 20;
    recipe.model.decoder.text_embed_dim = 6;
    for (const int frames : {2, 1}) {
      CleanSample& sample = samples.emplace_back();
      sample.frames = frames, sample.height = sample.width = 4;
      for (int i = 0; i < frames * 16; ++i)
        sample.codes.push_back(i * i % 19);
      sample.text.assign(12, 0.5f);
    }
  } else {
    const std::unique_ptr<Dataset> data =
        recipe.model.type == "tokenizer"
            ? make_up_clips({{5, 16, 16}, {1, 16, 16}}, recipe.model.autoencoder)
            : make_up_latents({.sizes = {{4, 8, 8}, {1, 8, 8}},
                               .channels = 4,
                               .text_tokens = 3,
                               .text_width = 8});
    data->fit(recipe);
    samples = {data->read(0, train::SeenAt{}), data->read(1, train::SeenAt{})};
  }
  samples[0].key = "a", samples[1].key = "b";
  return samples;
}

using Gradients = std::vector<std::vector<float>>;

inline Gradients gradients_of(const Objective& objective) {
  Gradients all;
  for (const nn::Parameter* parameter : objective.parameters())
    all.emplace_back(parameter->grad.floats().begin(), parameter->grad.floats().end());
  return all;
}

/// The recipe of one of the texts above, with `more`, and with adapters of `rank`.
inline Recipe small_recipe(const std::string& text, const std::string& more, int rank) {
  auto settings = parse_yaml(text, "recipe");
  for (const auto& setting : parse_yaml(more, "more"))
    settings.push_back(setting);
  Recipe recipe = make_recipe(settings);
  recipe.lora.rank = rank;
  return recipe;
}

/// Values without zeros, which would hide gradients.
inline void draw_parameters(const Objective& objective) {
  for (const nn::ParameterList* list : {&objective.parameters(), &objective.frozen()})
    for (nn::Parameter* parameter : *list) {
      const Tensor values(parameter->shape());
      Random(3, Purpose::test, 0, random_key(parameter->name)).fill_normal(values.floats());
      for (float& value : values.floats())
        value *= 0.2f;
      parameter->write(values);
    }
}

}  // namespace vfm::train
