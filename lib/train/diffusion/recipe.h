// The sections `diffusion` and `sampling` of a recipe (vfm-recipe(5)), which only diffusion has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/process/process.h"

namespace vfm::train {

struct DiffusionRecipe {
  models::Process process;           ///< set it with set_process()
  double p_mean = 0.0, p_std = 1.0;  ///< ln sigma ~ N(p_mean, p_std^2), per sample
  double shift = 1;                  ///< of flow matching: sigma is multiplied by it
  /// The noise level (models/process/process.h) is clamped to these.
  double sigma_min = 0.0002, sigma_max = 80.0;
  /// 1: all latent channels are normalized alike; 0: scaled as the tokenizer does.
  double whitening = 1.0;
  double loss_scale = 1.0;    ///< factor on the gradients, not on the reported loss (Cosmos: 10)
  double text_dropout = 0.1;  ///< probability that a sample is trained without its text
  /// Multiply the sigma of a video by sqrt(latent frames), as Cosmos-Predict2.
  bool scale_video_noise = false;
  /// Numbers of latent frames that a sample may be given; each is drawn equally often. A number
  /// above 0 makes a video-to-world model.
  std::vector<int> condition_frames = {0};
  /// ln sigma of given frames ~ N(augment_p_mean, augment_p_std^2).
  double augment_p_mean = -3.0, augment_p_std = 2.0;
  int text_padding = 0;  ///< texts are padded to this many tokens with zero vectors; 0: not padded

  bool video_to_world() const;
};

/// How vfm-generate samples the model by default.
struct SamplingRecipe {
  int steps = 0;                        ///< 0: not set
  double guidance = -1;                 ///< -1: not set
  double sigma_min = 0, sigma_max = 0;  ///< of EDM; 0: not set
  double shift = 0;                     ///< of flow matching; 0: that of training
};

}  // namespace vfm::train
