// SPDX-License-Identifier: Apache-2.0
#include "train/diffusion/batch.h"

#include <algorithm>
#include <cmath>

namespace vfm::train {

StepLevels::StepLevels(const DiffusionRecipe& recipe, std::uint64_t seed, std::uint32_t step,
                       std::size_t of_step)
    : recipe_(recipe),
      seed_(seed),
      step_(step),
      strata_(Random(seed, Purpose::sigma_strata, step).permutation(of_step)) {}

double StepLevels::at(std::size_t place, const std::string& key) const {
  const double jitter = Random(seed_, Purpose::sigma, step_, random_key(key)).uniform(0);
  const double u =
      (static_cast<double>(strata_.at(place)) + jitter) / static_cast<double>(strata_.size());
  return recipe_.process.quantile(u, recipe_.p_mean, recipe_.p_std);
}

double sample_level(const DiffusionRecipe& recipe, double drawn, int frames) {
  drawn = recipe.process.shifted(drawn, recipe.shift);
  // Neighbouring frames of a video are alike, so the same noise hides less of it than of an image.
  if (recipe.scale_video_noise)
    drawn = recipe.process.shifted(drawn, std::sqrt(static_cast<double>(frames)));
  return std::clamp(drawn, recipe.sigma_min, recipe.sigma_max);
}

Condition draw_condition(const DiffusionRecipe& recipe, const Random& random, int sample_frames) {
  const std::vector<int>& counts = recipe.condition_frames;
  const double place = random.uniform(0) * static_cast<double>(counts.size());
  const double drawn =
      recipe.process.quantile(random.uniform(1), recipe.augment_p_mean, recipe.augment_p_std);
  return {std::min(counts[static_cast<std::size_t>(place)], sample_frames - 1),
          std::clamp(drawn, recipe.sigma_min, recipe.sigma_max)};
}

void BatchBuilder::add(const CleanSample& sample, double level, bool without_text,
                       const Random& noise, Condition given) {
  const models::ProcessLevel at = process_.at(level);
  models::NetworkSample entry;
  entry.frames = sample.frames;
  entry.height = sample.height;
  entry.width = sample.width;
  entry.fps = static_cast<float>(sample.fps);
  entry.c_noise = static_cast<float>(at.time);
  const std::size_t width = static_cast<std::size_t>(config_.text_embed_dim);
  if (without_text || sample.text.empty()) {
    text_.resize(text_.size() + width, 0.0f);
  } else {
    const std::size_t begin = text_.size();
    text_.insert(text_.end(), sample.text.begin(), sample.text.end());
    entry.text_tokens = std::max(static_cast<int>(sample.text.size() / width), text_padding_);
    text_.resize(begin + static_cast<std::size_t>(entry.text_tokens) * width, 0.0f);
  }
  samples_.push_back(entry);

  x0_.insert(x0_.end(), sample.x0.begin(), sample.x0.end());
  ops::NoisySample& noisy = noise_.emplace_back();
  noisy.count = static_cast<std::int64_t>(sample.x0.size());
  noisy.in = static_cast<float>(at.in * at.keep);
  noisy.in_noise = static_cast<float>(at.in * at.noise);
  noisy.of_x0 = static_cast<float>(at.of_x0);
  noisy.of_noise = static_cast<float>(at.of_noise);
  noisy.noise = noise;
  if (!config_.video_to_world()) return;
  const std::int64_t plane = std::int64_t{sample.height} * sample.width;
  noisy.channel = sample.frames * plane;
  if (given.frames == 0) return;
  const models::ProcessLevel given_at = process_.at(given.level);
  noisy.given = given.frames * plane;
  noisy.given_in = static_cast<float>(given_at.in * given_at.keep);
  noisy.given_noise = static_cast<float>(given_at.in * given_at.noise);
}

CleanBatch BatchBuilder::build_clean() const {
  CleanBatch clean{{}, noise_};
  NoisyBatch& batch = clean.batch;
  const auto count = [](const std::vector<float>& v) {
    return static_cast<std::int64_t>(v.size());
  };
  batch.input.samples = samples_;
  batch.input.latents = Tensor::from(x0_, {count(x0_)});
  batch.input.text = Tensor::from(text_, {count(text_) / config_.text_embed_dim,
                                          static_cast<std::int64_t>(config_.text_embed_dim)});
  for (const ops::NoisySample& sample : noise_)
    batch.parts.push_back({sample.count, sample.channel, sample.given});
  return clean;
}

NoisyBatch add_noise(const CleanBatch& clean) {
  NoisyBatch noisy = clean.batch;
  const ops::NoisyPair pair = ops::noisy_pair(clean.batch.input.latents, clean.noise);
  noisy.input.latents = pair.latents;
  noisy.target = pair.target;
  return noisy;
}

NoisyBatch NoisyBatch::to(Device device) const {
  NoisyBatch moved = *this;
  moved.input.latents = input.latents.to(device);
  moved.input.text = input.text.to(device);
  moved.target = target.to(device);
  return moved;
}

}  // namespace vfm::train
