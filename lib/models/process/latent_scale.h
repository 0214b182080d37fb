// The scale in which a diffusion network sees latents.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/process/process.h"

namespace vfm::models {

/// Converts tokenizer latents to model units and back: model = (latent - mean) / std * sd, where sd
/// is the process's data_deviation().
/// The statistics are for each channel, or for each channel and latent frame, because a causal
/// tokenizer's first frame stands alone and differs from those after it. vfm-pack measures them, or
/// the tokenizer has its own (Cosmos: 16 channels x 16 frames). latents.json and the checkpoint
/// have {"mean":[...],"std":[...]} and, if above 1, "frames".
struct LatentScale {
  std::vector<double> mean, std;  ///< (C, F), the frame fastest; std > 0
  int frames = 1;                 ///< F; frames beyond the last have the last one's statistics

  /// Throws Error, naming `what`, unless both lists exist, are equally long, finite and made of
  /// whole channels, and std > 0.
  static LatentScale from_json(const Json& value, std::string_view what);
  Json to_json() const;
  std::size_t channels() const { return mean.size() / static_cast<std::size_t>(frames); }
  /// Returns the scale that whitens by `degree`, 0 to 1. A channel's standard deviation in x0 is
  /// then proportional to the latent's standard deviation to the power 1 - degree, and the root
  /// mean square over channels stays sd. Degree 1 returns this scale. Below 1, channels
  /// that hold little of the picture weigh less than those that hold much.
  LatentScale whitened(double degree) const;

  /// Converts `latent` in place. It is (C, T, anything), with C = channels() and T = latent_frames.
  /// The statistics' first T frames apply to it.
  void to_model(std::span<float> latent, int latent_frames, Process process) const;
  void from_model(std::span<float> latent, int latent_frames, Process process) const;
};

}  // namespace vfm::models
