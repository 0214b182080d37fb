// Training a tokenizer: it learns what it is shown, codes too.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "train/recipe/recipe_file.h"
#include "train/state/optimizer.h"
#include "train/tokenizer/objective.h"

using namespace vfm;
using namespace vfm::train;

namespace {

Recipe tiny(const std::string& more = "") {
  auto settings = parse_yaml(
      "model: {type: tokenizer, latent_channels: 6, encoder_block_out_channels: [8, 12], "
      "decode_block_out_channels: [8, 12], num_layers: 1, patch_size: 2, "
      "spatial_compression_ratio: 2, temporal_compression_ratio: 2}\n"
      "data: {frames: 5, size: 16}\n"
      "optimizer: {lr: 0.01, weight_decay: 0}\n",
      "tiny");
  for (const auto& setting : parse_yaml(more, "more"))
    settings.push_back(setting);
  return make_recipe(settings);
}

/// A disc that moves over a slope of grey.
PlacedSample clip(int frames = 5, int side = 16) {
  PlacedSample placed;
  CleanSample& sample = placed.sample;
  sample.key = "disc";
  sample.frames = frames, sample.height = sample.width = side;
  sample.pixels.resize(static_cast<std::size_t>(3 * frames * side * side));
  std::size_t i = 0;
  for (int colour = 0; colour < 3; ++colour)
    for (int t = 0; t < frames; ++t)
      for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x, ++i) {
          const bool inside = std::hypot(x - 4 - t, y - side / 2) < 4;
          sample.pixels[i] =
              inside ? (colour == 0 ? 0.8f : -0.6f) : 0.02f * static_cast<float>(y - x);
        }
  return placed;
}

LossSums pass(const TokenizerObjective& objective, const std::vector<PlacedSample>& clips) {
  const auto batch = objective.build(0, clips.size(), clips);
  objective.pass(*batch, true, {});
  return objective.loss(*batch);
}

double step(const TokenizerObjective& objective, Optimizer& optimizer, double rate) {
  const LossSums loss = pass(objective, {clip()});
  optimizer.update(rate, 1 / loss.elements());
  return loss.mean();
}

std::vector<float> gradients(const Recipe& recipe, nn::Recompute recompute) {
  const TokenizerObjective objective(recipe, recompute, Device::cpu);
  pass(objective, {clip(), clip(1)});
  std::vector<float> all;
  for (const nn::Parameter* parameter : objective.parameters())
    all.insert(all.end(), parameter->grad.floats().begin(), parameter->grad.floats().end());
  return all;
}

}  // namespace

TEST_CASE("a tokenizer learns to give back the one clip that it is shown") {
  const std::string kind = GENERATE("", "model.levels: [8, 8, 8, 5, 5, 5]",
                                    "model.compute: bf16\ntokenizer: {l1: 0, l2: 1}");
  INFO(kind);
  const Recipe recipe = tiny(kind);
  TokenizerObjective objective(recipe, nn::Recompute::none, Device::cpu);
  Optimizer optimizer(recipe.optimizer, recipe.ema, objective.parameters());
  const auto psnr = [&] {
    const LossSums sums = objective.validate(0, {clip().sample});
    CHECK(sums.clips == 1);
    return sums.psnr_sum;
  };
  const double before = psnr();
  for (int i = 0; i < 20; ++i)
    step(objective, optimizer, 0.01);
  CHECK(psnr() > before + 4);
}

TEST_CASE("a tokenizer's loss is the weighted error of its pixels, stills apart") {
  const Recipe l1 = tiny(), l2 = tiny("tokenizer: {l1: 0.5, l2: 2}");
  const auto loss = [](const Recipe& recipe) {
    const TokenizerObjective objective(recipe, nn::Recompute::none, Device::cpu);
    const LossSums training = pass(objective, {clip(), clip(1)});
    const LossSums checked = objective.validate(0, {clip().sample, clip(1).sample});
    CHECK(checked.mean() == training.mean());
    CHECK(checked.clips == 2);
    CHECK(training.image_elements == 3 * 16 * 16);
    CHECK(training.video_elements == 3 * 5 * 16 * 16);
    return training;
  };
  const LossSums plain = loss(l1), mixed = loss(l2);
  // Half the absolute error, and something more for the squares.
  CHECK(mixed.video_sum > 0.5 * plain.video_sum);
  CHECK(std::isfinite(mixed.mean()));
}

TEST_CASE("blocks that are computed again give the same gradients to the last bit") {
  const std::string kind =
      GENERATE("", "model.levels: [5, 5, 5]", "model.attention_resolutions: [512]");
  const Recipe recipe = tiny(kind);
  const std::vector<float> kept = gradients(recipe, nn::Recompute::none);
  CHECK(kept == gradients(recipe, nn::Recompute::block));
  CHECK(std::any_of(kept.begin(), kept.end(), [](float g) { return g != 0; }));
}

TEST_CASE("a code's gradient passes by the rounding") {
  // Else nothing before the codes would learn.
  const Recipe recipe = tiny("model.levels: [8, 8, 8]");
  const TokenizerObjective objective(recipe, nn::Recompute::none, Device::cpu);
  pass(objective, {clip()});
  double encoder = 0;
  for (const nn::Parameter* parameter : objective.parameters())
    if (parameter->name.starts_with("encoder.conv_in"))
      for (const float g : parameter->grad.floats())
        encoder += std::abs(double{g});
  CHECK(encoder > 0);
}
