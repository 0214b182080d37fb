// V-JEPA 2: a vision transformer for videos, trained to predict the features of hidden parts of a
// clip. It sees the order of frames, unlike the mean of the vectors of single frames.
//
//   x = layers(tubelets)             a token: P x P pixels of t frames that follow each other
//   vector = mean(layernorm(x))      over all tokens
//
// Places in time, height and width turn the queries and keys of each layer. Each has 2 (K / 6)
// elements of a head, rounded down; the elements left over have no place. Element j of such a part
// of d elements has the angle place / 10000^((j mod d / 2) / (d / 2)), and neighbours are turned by
// it (ops/position/turn_heads.h). So the two elements of a pair have different angles, as in the
// code that trained the weights.
//
// The model has no token for the whole clip. The attentive pooler that is published beside some
// checkpoints was trained for the classes of one data set, so it is not used. Neither is the
// predictor, which training needs.
// Source: Assran et al., "V-JEPA 2: self-supervised video models enable understanding, prediction
// and planning" (2025); transformers' VJEPA2Model for names and details.
// Shape letters: T frames, t frames of a tubelet, P side of a patch, K head dim.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Makes the tower of `folder`, of type "vjepa2", for clips of input.frames frames, or of as many
/// as the model was trained with if that is 0. `folder` must outlive it. Throws Error{usage} for a
/// configuration that is not supported or does not fit `input`; Error that lists the tensors that
/// do not fit.
std::unique_ptr<PictureTower> make_vjepa2(const HfComponent& folder, const PictureInput& input,
                                          DType compute, Device device);

}  // namespace vfm::models
