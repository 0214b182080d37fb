// What a recipe says of autoregressive training alone (vfm-recipe(5)): `autoregressive`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::train {

struct AutoregressiveRecipe {
  double z_loss = 1e-4;       ///< weight of the square of the logits' log-sum-exp
  double text_dropout = 0.1;  ///< how often a sample is trained without its text
  int ignored_frames = 0;     ///< first latent frames of a video that do not count in the loss
  int text_padding = 0;       ///< texts are filled up to this many tokens with zero vectors; 0: no
};

}  // namespace vfm::train
