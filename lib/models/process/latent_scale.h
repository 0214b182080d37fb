// The scale in which a diffusion network sees latents.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::models {

/// Tokenizer latents to model units and back:
/// model = (latent - mean) / std * sigma_data, with statistics for each channel, or for each
/// channel and latent frame: a causal tokenizer's first frame stands alone and differs from those
/// after it. Measured by vfm-pack, or the tokenizer's own (Cosmos: 16 channels x 16 frames). Kept
/// in latents.json and in the checkpoint as {"mean":[...],"std":[...]} and, above 1, "frames".
struct LatentScale {
  std::vector<double> mean, std;  ///< (C, F), the frame fastest; std > 0
  int frames = 1;                 ///< F; frames beyond the last have the last one's statistics

  /// Throws Error, naming `what`, unless both lists are there, equally long, finite, std > 0, and
  /// made of whole channels.
  static LatentScale from_json(const Json& value, std::string_view what);
  Json to_json() const;
  std::size_t channels() const { return mean.size() / static_cast<std::size_t>(frames); }
  /// The scale that whitens by `degree`, 0 to 1: a channel's standard deviation in x0 is
  /// proportional to its own to the power 1 - degree, and their root mean square stays sigma_data.
  /// 1 is this scale itself; below 1, channels that hold little of the picture weigh less than
  /// those that hold much.
  LatentScale whitened(double degree) const;

  /// `latent` is (C, T, anything) with C = channels() and T = latent_frames, which the first
  /// latent_frames of the statistics describe; in place.
  void to_model(std::span<float> latent, int latent_frames) const;
  void from_model(std::span<float> latent, int latent_frames) const;
};

}  // namespace vfm::models
