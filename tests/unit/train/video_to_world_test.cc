// Training of video-to-world models: given frames, their noise and mark, the loss without them; and
// texts that are filled up.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "latents_fixture.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/process/process.h"
#include "support/golden.h"
#include "train/diffusion/data.h"
#include "train/diffusion/loss.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;

namespace {

models::NetworkConfig config_of(int channels) {
  models::NetworkConfig config;
  config.in_channels = channels + 1;
  config.out_channels = channels;
  config.num_attention_heads = 2;
  config.attention_head_dim = 12;
  config.num_layers = 1;
  config.own<models::DitFields>().adaln_lora_dim = 4;
  config.text_embed_dim = 3;
  config.max_size = {4, 8, 8};
  return config;
}

CleanSample clean_sample(const std::string& key, int frames) {
  CleanSample sample;
  sample.key = key;
  sample.frames = frames;
  sample.height = 2;
  sample.width = 4;
  sample.fps = frames > 1 ? 12.0 : 0.0;
  for (int i = 0; i < 2 * frames * 8; ++i)
    sample.x0.push_back(0.1f * static_cast<float>(i % 7) - 0.2f);
  sample.text = {1, 2, 3, 4, 5, 6};
  return sample;
}

bool near(std::span<const float> a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::abs(x - y) <= 2e-6f * (1 + std::abs(y)); });
}

}  // namespace

TEST_CASE("video to world: input, loss and gradient are those of the published description") {
  const Golden golden("v2w_loss");  // scripts/golden/v2w_loss.py
  struct Case {
    int frames, height, width, given;
    double augment, sigma;
  };
  const Case cases[] = {{4, 2, 6, 2, 0.05, 1.7}, {3, 4, 2, 0, 0.3, 0.02}, {2, 2, 2, 1, 3.0, 40.0}};
  BatchBuilder builder(config_of(2));
  std::vector<float> input, output, gradient;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [frames, height, width, given, augment, sigma] = cases[i];
    const std::string number = "." + std::to_string(i);
    CleanSample sample;
    sample.frames = frames;
    sample.height = height;
    sample.width = width;
    sample.fps = 24;
    sample.x0 = golden["x0" + number];
    const Random noise(7, Purpose::noise, 3, i);
    std::vector<float> drawn(sample.x0.size());
    noise.fill_normal(drawn);
    REQUIRE(near(drawn, golden["noise" + number]));
    builder.add(sample, sigma, true, noise, {given, augment});
    for (const auto& [name, all] : std::map<std::string, std::vector<float>*>{
             {"input", &input}, {"output", &output}, {"gradient", &gradient}}) {
      const std::vector<float> part = golden[name + number];
      all->insert(all->end(), part.begin(), part.end());
    }
  }
  const NoisyBatch batch = builder.build();
  CHECK(near(batch.input.latents.floats(), input));
  const Loss loss = diffusion_loss(flat(output), batch, 1);
  CHECK(near(loss.error.seed.floats(), gradient));
  const std::vector<double> sums = loss.error.read_sums();
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(sums[i] == Approx(golden["loss." + std::to_string(i)][0]).epsilon(1e-5));
  // Given frames are not among the elements of the mean.
  CHECK(loss.sums(batch).elements() == 2 * 2 * 12 + 2 * 3 * 8 + 2 * 1 * 4);
}

TEST_CASE("video to world: whatever the model says of given frames, the loss is the same") {
  const models::NetworkConfig config = config_of(2);
  BatchBuilder builder(config);
  builder.add(clean_sample("a", 3), 0.7, false, Random(1, Purpose::noise, 0, 1), {2, 0.1});
  const NoisyBatch batch = builder.build();
  std::vector<float> output(48);
  for (std::size_t i = 0; i < output.size(); ++i)
    output[i] = std::sin(static_cast<float>(i));
  const double expected = diffusion_loss(flat(output), batch, 1).sums(batch).mean();
  for (std::size_t i = 0; i < output.size(); ++i)
    if (i % 24 < 16) output[i] = i % 2 == 0 ? 1e6f : NAN;
  const Loss loss = diffusion_loss(flat(output), batch, 1);
  CHECK(loss.sums(batch).mean() == expected);
  for (std::size_t i = 0; i < output.size(); ++i)
    CHECK((loss.error.seed.floats()[i] == 0) == (i % 24 < 16));
  output[20] += 1;
  CHECK(diffusion_loss(flat(output), batch, 1).sums(batch).mean() != expected);
}

TEST_CASE("video to world: the mean loss does not depend on how many frames are given") {
  // Nulled frames that stay in the mean would make a loss of two given frames of three a third of
  // that of none.
  for (const int given : {0, 1, 2}) {
    BatchBuilder builder(config_of(2));
    builder.add(clean_sample("a", 3), 0.7, false, Random(1, Purpose::noise, 0, 1), {given, 0.1});
    const NoisyBatch batch = builder.build();
    std::vector<float> output(batch.target.floats().begin(), batch.target.floats().end());
    for (float& value : output)
      value += 0.5f;
    CHECK(diffusion_loss(flat(output), batch, 1).sums(batch).mean() == Approx(0.25).epsilon(1e-5));
  }
}

TEST_CASE("video to world: how many frames are given, and their noise, is drawn per sample") {
  DiffusionRecipe recipe;
  recipe.condition_frames = {0, 1, 3};
  const auto draw = [&](std::uint32_t step, const std::string& key, int frames) {
    return draw_condition(recipe, Random(5, Purpose::condition, step, random_key(key)), frames);
  };
  std::map<int, int> counts;
  double mean = 0, square = 0;
  int both = 0, inside = 0;
  for (std::uint32_t step = 0; step < 6000; ++step) {
    const Condition a = draw(step, "a", 8), b = draw(step, "b", 8);
    CHECK(a.frames == draw(step, "a", 8).frames);
    ++counts[a.frames];
    both += a.frames == b.frames;
    if (a.level <= recipe.sigma_min) continue;  // clamped
    const double z = (std::log(a.level) + 3.0) / 2.0;
    mean += z;
    square += z * z;
    ++inside;
  }
  REQUIRE(counts.size() == 3);
  for (const int frames : {0, 1, 3})
    CHECK(counts[frames] == Approx(2000).margin(130));
  CHECK(both == Approx(2000).margin(130));  // independent: not one draw for the whole pack
  CHECK(inside > 5980);
  CHECK(mean / inside == Approx(0).margin(0.05));
  CHECK(square / inside == Approx(1).margin(0.08));
  // Something is left to be made, and an image is made whole.
  for (std::uint32_t step = 0; step < 50; ++step) {
    CHECK(draw(step, "a", 3).frames <= 2);
    CHECK(draw(step, "a", 1).frames == 0);
  }
  recipe.sigma_min = 0.04;
  recipe.sigma_max = 0.06;
  for (std::uint32_t step = 0; step < 50; ++step) {
    CHECK(draw(step, "a", 3).level >= 0.04);
    CHECK(draw(step, "a", 3).level <= 0.06);
  }
}

TEST_CASE("video to world: a run has one channel more, trains, and validates on given frames") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train");
  const Dataset& data = *set;
  const auto world = dist::self_world();
  Recipe recipe = tiny_recipe("diffusion: {condition_frames: [1]}");
  data.fit(recipe);
  CHECK(recipe.model.dit.in_channels == 5);
  CHECK(recipe.model.dit.out_channels == 4);
  Trainer trainer(recipe, data, *world);
  const StepResult first = trainer.train_step();
  // Videos have two latent frames, of which one is given.
  CHECK(first.loss.image_elements > 0);
  CHECK(std::fmod(first.loss.video_elements, 64) == 0);
  CHECK(std::isfinite(first.gradient_norm));
  Validation validation(recipe, data, "train");
  const Json record = validation.run(trainer.objective(), trainer.parallel());
  CHECK(record == validation.run(trainer.objective(), trainer.parallel()));
  CHECK(record["val_sigmas"].size() == 2);

  // The same model, never given a frame.
  Recipe alone = tiny_recipe("model: {in_channels: 5, out_channels: 4}");
  data.fit(alone);
  Trainer(alone, data, *world).train_step();
  Recipe narrow = tiny_recipe("model: {in_channels: 4}\ndiffusion: {condition_frames: [0, 1]}");
  CHECK_THROWS_WITH(data.fit(narrow), Catch::Contains("'model.in_channels' is 4, must be 5"));
}

TEST_CASE("texts are filled up with zero vectors, which a text that is dropped needs only one of") {
  const models::NetworkConfig config = config_of(2);
  const CleanSample sample = clean_sample("a", 2);
  const Random noise(1, Purpose::noise, 0, 1);
  BatchBuilder padded(config, 5), plain(config);
  for (BatchBuilder* builder : {&padded, &plain}) {
    builder->add(sample, 0.7, false, noise);
    builder->add(sample, 0.7, true, noise);
  }
  const NoisyBatch full = padded.build(), bare = plain.build();
  CHECK(full.input.samples[0].text_tokens == 5);
  CHECK(full.input.samples[1].text_tokens == 1);
  const std::vector<float> expected = {1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  CHECK(std::ranges::equal(full.input.text.floats(), expected));
  // Longer texts are not cut.
  BatchBuilder short_fill(config, 1);
  short_fill.add(sample, 0.7, false, noise);
  CHECK(short_fill.build().input.samples[0].text_tokens == 2);

  // The model sees the zeros beside words, and cannot tell one zero vector from many alone.
  const auto network = models::make_network(config, 3);
  for (nn::Parameter* parameter : network->parameters())
    for (float& value : parameter->value.floats())
      value +=
          0.2f * Random(4, Purpose::test, 0, random_key(parameter->name))
                     .normal(static_cast<std::uint64_t>(&value - parameter->value.data<float>()));
  const auto answer = [&](const NoisyBatch& batch) {
    ops::Tape tape(false);
    return network->forward(tape, batch.input);
  };
  NoisyBatch many = full;
  many.input.samples[1].text_tokens = 5;
  many.input.text = Tensor::zeros({10, 3});
  std::ranges::copy(expected, many.input.text.floats().begin());
  const Tensor a = answer(full), b = answer(bare), c = answer(many);
  const auto half = static_cast<std::size_t>(a.elements() / 2);
  CHECK(distance(a.floats().first(half), b.floats().first(half)) > 1e-3);
  CHECK(distance(a.floats().last(half), c.floats().last(half)) < 1e-6);
}
