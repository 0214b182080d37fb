// The gradients that the batches of a step leave, whatever is trained.
// SPDX-License-Identifier: Apache-2.0
#include "train/objective.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "base/philox.h"
#include "train/diffusion/latents.h"
#include "train/kind.h"
#include "train/recipe_file.h"
#include "train/tokenizer/clips.h"

using namespace vfm;
using namespace vfm::train;

namespace {

constexpr const char* kNetworks =
    "model: {num_attention_heads: 2, attention_head_dim: 16, num_layers: 2, mlp_ratio: 2}\n"
    "data: {tokens: 256}\n";
constexpr const char* kTokenizers =
    "model: {type: tokenizer, latent_channels: 3, encoder_block_out_channels: [4, 6], "
    "decode_block_out_channels: [4, 6], num_layers: 1, patch_size: 2, "
    "spatial_compression_ratio: 2, temporal_compression_ratio: 2}\n"
    "data: {frames: 5, size: 16}\n";
constexpr const char* kCodes =
    "model: {type: autoregressive, num_attention_heads: 2, num_key_value_heads: 1, "
    "attention_head_dim: 16, num_layers: 2, mlp_ratio: 2}\n"
    "data: {tokens: 256}\n";

/// Two samples for the recipe, which is fitted to them.
std::vector<CleanSample> fitted_samples(Recipe& recipe) {
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
    samples = {data->read(0, 0), data->read(1, 0)};
  }
  samples[0].key = "a", samples[1].key = "b";
  return samples;
}

using Gradients = std::vector<std::vector<float>>;

Gradients gradients_of(const Objective& objective) {
  Gradients all;
  for (const nn::Parameter* parameter : objective.parameters())
    all.emplace_back(parameter->grad.floats().begin(), parameter->grad.floats().end());
  return all;
}

}  // namespace

TEST_CASE("the gradients of a step's first batch take the place of what is there") {
  const auto [text, more, rank] = GENERATE(table<const char*, const char*, int>({
      {kNetworks, "{}", 0},
      {kNetworks, "model.compute: bf16", 0},
      {kNetworks, "{}", 2},
      {kNetworks, "model.type: stdit", 0},
      {kNetworks, "model: {type: moviegen, num_key_value_heads: 1}", 0},
      {kCodes, "{}", 0},
      {kTokenizers, "{}", 0},
      {kTokenizers, "model.levels: [8, 5, 3]", 0},
  }));
  auto settings = parse_yaml(text, "recipe");
  for (const auto& setting : parse_yaml(more, "more"))
    settings.push_back(setting);
  Recipe recipe = make_recipe(settings);
  recipe.lora.rank = rank;
  const std::vector<CleanSample> samples = fitted_samples(recipe);
  const std::vector<std::string> keys{"a", "b"};
  for (const models::Recompute recompute : kind_of(recipe.model.type).recomputes()) {
    INFO(text << more << " adapters " << rank << " " << models::recompute_name(recompute));
    const auto objective =
        kind_of(recipe.model.type).make_objective(recipe, recompute, Device::cpu);
    for (const nn::ParameterList* list : {&objective->parameters(), &objective->frozen()})
      for (nn::Parameter* parameter : *list) {
        const Tensor values(parameter->shape());
        Random(3, Purpose::test, 0, random_key(parameter->name)).fill_normal(values.floats());
        for (float& value : values.floats())
          value *= 0.2f;
        parameter->write(values);
      }
    const auto pass = [&](std::size_t sample, bool first) {
      const auto batch = objective->build(0, keys, {{samples[sample], sample}});
      objective->pass(*batch, first);
      return gradients_of(*objective);
    };
    nn::zero_gradients(objective->parameters());
    const Gradients one = pass(0, false), both = pass(1, false);
    for (nn::Parameter* parameter : objective->parameters())
      std::ranges::fill(parameter->grad.floats(), std::numeric_limits<float>::quiet_NaN());
    CHECK(pass(0, true) == one);
    CHECK(pass(1, false) == both);
    CHECK(pass(0, true) == one);
  }
}
