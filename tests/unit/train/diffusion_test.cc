// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "models/process/process.h"
#include "train/diffusion/loss.h"
#include "train/step/objective.h"

using namespace vfm;
using namespace vfm::train;

namespace {

/// Of samples of these keys, all that a step has.
std::vector<double> draw_sigmas(const DiffusionRecipe& recipe, std::uint64_t seed,
                                std::uint32_t step, const std::vector<std::string>& keys) {
  const StepLevels sigmas(recipe, seed, step, keys.size());
  std::vector<double> drawn;
  for (std::size_t i = 0; i < keys.size(); ++i)
    drawn.push_back(sigmas.at(i, keys[i]));
  return drawn;
}

std::vector<std::string> make_keys(int n) {
  std::vector<std::string> keys;
  for (int i = 0; i < n; ++i)
    keys.push_back("sample" + std::to_string(i));
  return keys;
}

models::NetworkConfig tiny_config() {
  models::NetworkConfig config;
  config.in_channels = config.out_channels = 2;
  config.text_embed_dim = 3;
  return config;
}

CleanSample make_sample(const std::string& key, int frames) {
  CleanSample sample{key, frames, 2, 4, frames > 1 ? 12.0 : 0.0, {}, {}};
  for (int i = 0; i < 2 * frames * 8; ++i)
    sample.x0.push_back(0.1f * static_cast<float>(i % 7) - 0.2f);
  sample.text = {1, 2, 3, 4, 5, 6};
  return sample;
}

}  // namespace

TEST_CASE(
    "diffusion: noise levels are lognormal, stratified over the step, and named by seed, step, "
    "key") {
  DiffusionRecipe recipe;
  recipe.p_mean = 0.7;
  recipe.p_std = 1.2;
  const auto keys = make_keys(16);
  const auto sigmas = draw_sigmas(recipe, 3, 5, keys);
  CHECK(sigmas == draw_sigmas(recipe, 3, 5, keys));
  CHECK(sigmas != draw_sigmas(recipe, 3, 6, keys));
  CHECK(sigmas != draw_sigmas(recipe, 4, 5, keys));
  // One in each sixteenth of the distribution: erfc is the independent way to the quantile.
  std::vector<int> strata(16);
  for (const double sigma : sigmas) {
    const double z = (std::log(sigma) - 0.7) / 1.2;
    ++strata[static_cast<std::size_t>(16 * 0.5 * std::erfc(-z / std::sqrt(2.0)))];
  }
  CHECK(std::all_of(strata.begin(), strata.end(), [](int n) { return n == 1; }));

  // Over many steps every sample sees all levels.
  double mean = 0, square = 0;
  for (std::uint32_t step = 0; step < 2000; ++step) {
    const double z = (std::log(draw_sigmas(recipe, 3, step, keys)[0]) - 0.7) / 1.2;
    mean += z / 2000;
    square += z * z / 2000;
  }
  CHECK(std::abs(mean) < 0.07);
  CHECK(square == Approx(1.0).margin(0.1));
}

TEST_CASE("diffusion: sigma is clamped, and scaled for videos if asked") {
  DiffusionRecipe recipe;
  CHECK(sample_level(recipe, 1e9, 1) == 80.0);
  CHECK(sample_level(recipe, 1e-9, 1) == 0.0002);
  CHECK(sample_level(recipe, 2.0, 16) == 2.0);
  recipe.scale_video_noise = true;
  CHECK(sample_level(recipe, 2.0, 16) == 8.0);
  CHECK(sample_level(recipe, 2.0, 1) == 2.0);
}

TEST_CASE("diffusion: text is dropped as often as the recipe says, per sample") {
  DiffusionRecipe recipe;
  recipe.text_dropout = 0.1;
  int dropped = 0, both = 0;
  for (std::uint32_t step = 0; step < 4000; ++step) {
    const bool a = drop_text(recipe.text_dropout, 1, step, "a"),
               b = drop_text(recipe.text_dropout, 1, step, "b");
    dropped += a + b;
    both += a && b;
  }
  CHECK(dropped == Approx(800).margin(90));
  CHECK(both == Approx(40).margin(25));  // independent: not one draw for the whole pack
  recipe.text_dropout = 0;
  CHECK_FALSE(drop_text(recipe.text_dropout, 1, 0, "a"));
}

TEST_CASE("diffusion: the target is the one at which D equals x0, at every noise level") {
  const models::NetworkConfig config = tiny_config();
  const CleanSample sample = make_sample("a", 3);
  for (const double sigma : {0.0002, 0.03, 0.5, 7.0, 80.0}) {
    BatchBuilder builder(config);
    const Random noise(1, Purpose::noise, 2, random_key("a"));
    builder.add(sample, sigma, false, noise);
    const NoisyBatch batch = builder.build();
    const models::ProcessLevel c = models::Process().at(sigma);
    CHECK(batch.input.samples[0].c_noise == Approx(0.25 * std::log(sigma)));
    double square = 0;
    for (std::size_t i = 0; i < sample.x0.size(); ++i) {
      const double x = sample.x0[i] + sigma * noise.normal(i);
      CHECK(batch.input.latents.floats()[i] == Approx(c.in * x).epsilon(1e-5).margin(1e-6));
      const double denoised = c.skip * x + c.out * batch.target.floats()[i];
      CHECK(denoised == Approx(sample.x0[i]).margin(2e-6 * std::max(1.0, sigma)));
      square += std::pow(batch.target.floats()[i], 2);
    }
    CHECK(square / static_cast<double>(sample.x0.size()) < 4.0);
  }
}

TEST_CASE("diffusion: the loss is lambda (D - x0)^2, summed; its seed is the derivative") {
  const models::NetworkConfig config = tiny_config();
  const CleanSample image = make_sample("a", 1), video = make_sample("b", 2);
  BatchBuilder builder(config);
  const double sigmas[] = {0.4, 9.0};
  builder.add(image, sigmas[0], false, Random(1, Purpose::noise, 0, 1));
  builder.add(video, sigmas[1], true, Random(1, Purpose::noise, 0, 2));
  const NoisyBatch batch = builder.build();
  std::vector<float> f(batch.target.elements());
  for (std::size_t i = 0; i < f.size(); ++i)
    f[i] = std::sin(static_cast<float>(i));
  const Tensor output = Tensor::from(f, {batch.target.elements()});
  const Loss loss = diffusion_loss(output, batch, 10);
  const LossSums totals = loss.sums(batch);
  CHECK(totals.image_elements == 16);
  CHECK(totals.video_elements == 32);

  double sums[2] = {};
  std::size_t at = 0;
  for (int s = 0; s < 2; ++s) {
    const CleanSample& sample = s == 0 ? image : video;
    const models::ProcessLevel c = models::Process().at(sigmas[s]);
    for (std::size_t i = 0; i < sample.x0.size(); ++i, ++at) {
      const double x = batch.input.latents.floats()[at] / c.in;
      const double d = c.skip * x + c.out * f[at];
      sums[s] += std::pow((d - sample.x0[i]) / c.out, 2);
      CHECK(loss.error.seed.floats()[at] ==
            Approx(20 * (f[at] - batch.target.floats()[at])).margin(1e-5));
    }
  }
  CHECK(totals.image_sum == Approx(sums[0]).epsilon(1e-4));
  CHECK(totals.video_sum == Approx(sums[1]).epsilon(1e-4));
  CHECK(totals.mean() == Approx((sums[0] + sums[1]) / 48).epsilon(1e-4));
  CHECK_FALSE(diffusion_loss(output, batch, 0).error.seed.defined());
}

TEST_CASE("fault 7: samples of one pack have their own noise level, noise, and text") {
  // One sigma, one timestep and one text-dropout draw for a whole pack; and sigma in bf16.
  const models::NetworkConfig config = tiny_config();
  const CleanSample sample = make_sample("a", 2);
  BatchBuilder pack(config), alone(config);
  pack.add(make_sample("z", 1), 30.0, true, Random(1, Purpose::noise, 0, 9));
  pack.add(sample, 0.1, false, Random(1, Purpose::noise, 0, 2));
  alone.add(sample, 0.1, false, Random(1, Purpose::noise, 0, 2));
  const NoisyBatch both = pack.build(), one = alone.build();
  CHECK(both.input.samples[0].c_noise != both.input.samples[1].c_noise);
  CHECK(both.input.samples[1].c_noise == one.input.samples[0].c_noise);
  const auto tail = both.input.latents.floats().subspan(16);
  CHECK(std::equal(tail.begin(), tail.end(), one.input.latents.floats().begin()));
  // Two levels that bf16 could not tell apart.
  BatchBuilder close(config);
  close.add(sample, 1.0, true, Random(1, Purpose::noise, 0, 2));
  close.add(sample, 1.001, true, Random(1, Purpose::noise, 0, 2));
  const NoisyBatch two = close.build();
  CHECK(two.input.samples[0].c_noise != two.input.samples[1].c_noise);
  const auto latents = two.input.latents.floats();
  CHECK_FALSE(std::equal(latents.begin(), latents.begin() + 32, latents.begin() + 32));
  // Dropped text is one zero token, and takes nothing from its neighbour.
  CHECK(both.input.samples[0].text_tokens == 1);
  CHECK(both.input.samples[1].text_tokens == 2);
  CHECK(both.input.text.shape() == Shape{3, 3});
  const std::vector<float> expected = {0, 0, 0, 1, 2, 3, 4, 5, 6};
  CHECK(std::equal(expected.begin(), expected.end(), both.input.text.floats().begin()));
}

TEST_CASE("diffusion: a sample without text gets one zero token") {
  CleanSample sample = make_sample("a", 1);
  sample.text.clear();
  BatchBuilder builder(tiny_config());
  builder.add(sample, 1.0, false, Random(1, Purpose::noise));
  const NoisyBatch batch = builder.build();
  CHECK(batch.input.samples[0].text_tokens == 1);
  CHECK(batch.input.text.floats()[0] == 0.0f);
}
