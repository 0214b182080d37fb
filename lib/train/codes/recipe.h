// The section `autoregressive` of a recipe (vfm-recipe(5)), which only this kind of training has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::train {

struct AutoregressiveRecipe {
  double z_loss = 1e-4;       ///< weight of the square of the logits' log-sum-exp
  double text_dropout = 0.1;  ///< probability that a sample is trained without its text
  int ignored_frames = 0;     ///< first latent frames of a video that are left out of the loss
  int text_padding = 0;  ///< texts are padded to this many tokens with zero vectors; 0: not padded
};

}  // namespace vfm::train
