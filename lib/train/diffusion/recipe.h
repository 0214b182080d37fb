// What a recipe says of diffusion alone (vfm-recipe(5)): `diffusion` and `sampling`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace vfm::train {

struct DiffusionRecipe {
  double p_mean = 0.0, p_std = 1.0;             ///< ln sigma ~ N(p_mean, p_std^2), per sample
  double sigma_min = 0.0002, sigma_max = 80.0;  ///< sigma is clamped to these
  double whitening = 1.0;     ///< 1: every latent channel alike; 0: as the tokenizer scales them
  double loss_scale = 1.0;    ///< factor on the gradients, not on the reported loss (Cosmos: 10)
  double text_dropout = 0.1;  ///< how often a sample is trained without its text
  bool scale_video_noise = false;  ///< sigma of a video times sqrt(latent frames), as predict2
  /// How many latent frames a sample is given, each number as often as the others. Any above 0
  /// makes a video-to-world model.
  std::vector<int> condition_frames = {0};
  /// ln of the noise level of given frames ~ N(augment_p_mean, augment_p_std^2).
  double augment_p_mean = -3.0, augment_p_std = 2.0;
  int text_padding = 0;  ///< texts are filled up to this many tokens with zero vectors; 0: no

  bool video_to_world() const;
};

/// How vfm-generate samples the model where its user does not say.
struct SamplingRecipe {
  int steps = 0;                        ///< 0: not said
  double guidance = -1;                 ///< -1: not said
  double sigma_min = 0, sigma_max = 0;  ///< 0: not said
};

}  // namespace vfm::train
