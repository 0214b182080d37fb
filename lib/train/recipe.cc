// SPDX-License-Identifier: Apache-2.0
#include "train/recipe.h"

#include <algorithm>

namespace vfm::train {

bool DiffusionRecipe::video_to_world() const {
  return std::ranges::any_of(condition_frames, [](int frames) { return frames > 0; });
}

int Recipe::text_tokens(int of_sample) const {
  return std::max({1, of_sample, diffusion.text_padding});
}

DType Recipe::compute() const {
  return model.compute == "bf16" ? DType::bf16 : DType::f32;
}

data::Patch ModelRecipe::patch() const {
  if (autoregressive() || tokenizer()) return {1, 1, 1};
  return {dit.patch_size[0], dit.patch_size[1], dit.patch_size[2]};
}

data::ClipOptions Recipe::clip() const {
  data::ClipOptions options;
  options.frames = data.frames;
  options.square = data.size;
  options.shorter_side = data.shorter_side;
  options.seed = train.seed;
  options.time_step = model.autoencoder.temporal_compression_ratio;
  return options;
}

DType OptimizerRecipe::moment_type() const {
  return moments == "bf16" ? DType::bf16 : DType::f32;
}

}  // namespace vfm::train
