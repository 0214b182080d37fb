// Shape letters: T frames, H rows, W columns of pixels.
// SPDX-License-Identifier: Apache-2.0
#include "train/tokenizer/objective.h"

#include <algorithm>
#include <utility>

#include "models/ssim.h"
#include "models/tokenizer.h"
#include "ops/loss/pixel_error.h"
#include "ops/pointwise/fsq.h"

namespace vfm::train {
namespace {

/// Pixels (3, T, H, W) as [T, H, W, 3].
Tensor channels_last(const CleanSample& sample) {
  const Tensor out({sample.frames, sample.height, sample.width, 3});
  const std::size_t count = sample.pixels.size() / 3;
  float* const to = out.data<float>();
  for (std::size_t colour = 0; colour < 3; ++colour)
    for (std::size_t i = 0; i < count; ++i)
      to[3 * i + colour] = sample.pixels[colour * count + i];
  return out;
}

/// The other way.
std::vector<float> planar(const Tensor& frames) {
  std::vector<float> pixels(frames.floats().size());
  const float* const from = frames.data<float>();
  const std::size_t count = pixels.size() / 3;
  for (std::size_t colour = 0; colour < 3; ++colour)
    for (std::size_t i = 0; i < count; ++i)
      pixels[colour * count + i] = from[3 * i + colour];
  return pixels;
}

struct Passed {
  ops::PixelError error;
  std::int64_t frames = 0, values = 0;
};

/// A clip's part of the sums.
void add(LossSums& sums, const Passed& clip, const TokenizerRecipe& recipe) {
  const ops::PixelError::Sums error = clip.error.read();
  sums.add(clip.frames == 1, recipe.l1 * error.absolute + recipe.l2 * error.squares,
           static_cast<double>(clip.values));
}

/// How near a clip is to what it was.
void add_quality(LossSums& sums, const Tensor& clip, const Tensor& frames) {
  sums.psnr_sum += models::psnr(clip.floats(), frames.floats());
  ++sums.clips;
  if (std::min(clip.size(1), clip.size(2)) < models::kSsimWindow) return;
  sums.ssim_sum += models::ssim(clip, frames);
  ++sums.ssim_clips;
}

}  // namespace

TokenizerObjective::TokenizerObjective(const Recipe& recipe, models::Recompute recompute,
                                       Device device)
    : recipe_(recipe),
      model_(recipe.model.autoencoder, recipe.train.seed, recipe.compute(), device) {
  model_.set_recompute(recompute == models::Recompute::block);
}

Json TokenizerObjective::config() const {
  return model_.config().to_json();
}

Tensor TokenizerObjective::pass(ops::Tape& tape, const Tensor& pixels) const {
  Tensor latents = model_.encode(tape, pixels);
  if (model_.config().discrete()) latents = ops::fsq(tape, latents, model_.config().levels);
  return model_.decode(tape, latents);
}

BatchPass TokenizerObjective::build(std::uint32_t /*step*/, std::span<const std::string> /*keys*/,
                                    const std::vector<PlacedSample>& samples) const {
  std::vector<Tensor> clips;
  for (const auto& [sample, place] : samples)
    clips.push_back(channels_last(sample));
  return [this, clips = std::move(clips)]() -> LossReader {
    const ops::PixelWeights weights{recipe_.tokenizer.l1, recipe_.tokenizer.l2};
    std::vector<Passed> passed;
    for (const Tensor& clip : clips) {
      const Tensor pixels = clip.to(device());
      ops::Tape tape;
      const Tensor frames = pass(tape, pixels);
      ops::PixelError error = ops::pixel_error(frames, pixels, weights, 1);
      tape.backward(frames, std::exchange(error.seed, Tensor()));
      passed.push_back({std::move(error), pixels.size(0), pixels.elements()});
    }
    return [this, passed = std::move(passed)] {
      LossSums sums;
      for (const Passed& clip : passed)
        add(sums, clip, recipe_.tokenizer);
      return sums;
    };
  };
}

BatchPass TokenizerObjective::build_validation(std::size_t /*level*/,
                                               const std::vector<CleanSample>& samples) const {
  std::vector<Tensor> clips;
  for (const CleanSample& sample : samples)
    clips.push_back(channels_last(sample));
  return [this, clips = std::move(clips)]() -> LossReader {
    LossSums sums;
    for (const Tensor& clip : clips) {
      ops::Tape silent(false);
      const Tensor pixels = clip.to(device()), frames = pass(silent, pixels);
      add(sums, {ops::pixel_error(frames, pixels, {}, 0), pixels.size(0), pixels.elements()},
          recipe_.tokenizer);
      add_quality(sums, clip, frames.to(Device::cpu));
    }
    return [sums] { return sums; };
  };
}

std::vector<float> TokenizerObjective::reconstruct(const CleanSample& sample) const {
  ops::Tape silent(false);
  return planar(pass(silent, channels_last(sample).to(device())).to(Device::cpu));
}

}  // namespace vfm::train
