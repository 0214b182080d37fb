// Shape letters: T frames, H rows, W columns of pixels.
// SPDX-License-Identifier: Apache-2.0
#include "train/tokenizer/objective.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "models/cosmos/config_json.h"
#include "models/ssim.h"
#include "models/tokenizer.h"
#include "ops/loss/pixel_error.h"
#include "ops/pointwise/fsq.h"
#include "tensor/meta.h"

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

/// A clip's part of the sums.
void add(LossSums& sums, const ops::PixelError& clip_error, const Tensor& clip,
         const TokenizerRecipe& recipe) {
  const ops::PixelError::Sums error = clip_error.read();
  sums.add(clip.size(0) == 1, recipe.l1 * error.absolute + recipe.l2 * error.squares,
           static_cast<double>(clip.elements()));
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

struct TokenizerObjective::Clips final : Batch {
  std::vector<Tensor> pixels;           // [T, H, W, 3], in the host's memory
  std::vector<ops::PixelError> errors;  // of each that has passed
};

TokenizerObjective::TokenizerObjective(const Recipe& recipe, nn::Recompute recompute, Device device)
    : recipe_(recipe),
      model_(recipe.model.autoencoder, recipe.train.seed, recipe.compute(), device) {
  model_.set_recompute(recompute == nn::Recompute::block);
}

Json TokenizerObjective::config() const {
  return models::cosmos_config_to_json(model_.config());
}

Tensor TokenizerObjective::decoded(ops::Tape& tape, const Tensor& pixels) const {
  Tensor latents = model_.encode(tape, pixels);
  if (model_.config().discrete()) latents = ops::fsq(tape, latents, model_.config().levels);
  return model_.decode(tape, latents);
}

std::unique_ptr<Batch> TokenizerObjective::build(std::uint32_t /*step*/, std::size_t /*of_step*/,
                                                 const std::vector<PlacedSample>& samples) const {
  auto clips = std::make_unique<Clips>();
  for (const PlacedSample& one : samples)
    clips->pixels.push_back(channels_last(one.sample));
  return clips;
}

std::unique_ptr<Batch> TokenizerObjective::blank(const std::vector<data::Entry>& samples) const {
  const models::CosmosConfig& config = model_.config();
  const int space = config.spatial_compression_ratio;
  auto clips = std::make_unique<Clips>();
  for (const data::Entry& entry : samples) {
    const Shape shape{1 + (entry.frames - 1) * config.temporal_compression_ratio,
                      entry.height * space, entry.width * space, 3};
    // Of a GPU's memory a clip takes some when it passes.
    clips->pixels.push_back(layout_device(device()) == Device::cpu
                                ? Tensor(shape, DType::f32, device())
                                : Tensor::borrow(this, shape, DType::f32, nullptr));
  }
  return clips;
}

void TokenizerObjective::pass(Batch& batch, bool first, const ops::Tape::Listener& final) const {
  auto& clips = dynamic_cast<Clips&>(batch);
  const ops::PixelWeights weights{recipe_.tokenizer.l1, recipe_.tokenizer.l2};
  for (const Tensor& clip : clips.pixels) {
    const Tensor pixels = clip.to(device());
    ops::Tape tape;
    if (first && clips.errors.empty()) tape.replace_gradients();
    if (clips.errors.size() + 1 == clips.pixels.size()) tape.listen(final);
    const Tensor frames = decoded(tape, pixels);
    ops::PixelError error = ops::pixel_error(frames, pixels, weights, 1);
    tape.backward(frames, std::exchange(error.seed, Tensor()));
    clips.errors.push_back(std::move(error));
  }
}

LossSums TokenizerObjective::loss(const Batch& batch) const {
  const auto& clips = dynamic_cast<const Clips&>(batch);
  LossSums sums;
  for (std::size_t i = 0; i < clips.errors.size(); ++i)
    add(sums, clips.errors[i], clips.pixels[i], recipe_.tokenizer);
  return sums;
}

LossSums TokenizerObjective::validate(std::size_t /*level*/,
                                      const std::vector<CleanSample>& samples) const {
  LossSums sums;
  for (const CleanSample& sample : samples) {
    const Tensor clip = channels_last(sample), pixels = clip.to(device());
    ops::Tape silent(false);
    const Tensor frames = decoded(silent, pixels);
    add(sums, ops::pixel_error(frames, pixels, {}, 0), clip, recipe_.tokenizer);
    add_quality(sums, clip, frames.to(Device::cpu));
  }
  return sums;
}

std::vector<float> TokenizerObjective::reconstruct(const CleanSample& sample) const {
  ops::Tape silent(false);
  return planar(decoded(silent, channels_last(sample).to(device())).to(Device::cpu));
}

}  // namespace vfm::train
