// The image tower of SigLIP, and of SigLIP 2 with a fixed resolution. It has no class token.
//
//   x = layers(patches + places)
//   vector = siglip_head(x)          models/encoder/siglip_head.h
//
// Vectors of texts are in the same space. models/encoder/siglip_naflex.h has SigLIP 2 of any
// resolution.
// Source: Zhai et al., "Sigmoid loss for language image pre-training" (2023); Tschannen et al.,
// "SigLIP 2" (2025); transformers' SiglipModel.get_image_features for names and details.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Makes the tower of `folder`, of type "siglip" or "siglip_vision_model", for pictures of `size`.
/// `folder` must outlive it. Throws Error{usage} for a configuration that is not supported or a
/// size that is not the model's; Error that lists the tensors that do not fit.
std::unique_ptr<PictureTower> make_siglip_vision(const HfComponent& folder, PictureSize size,
                                                 DType compute, Device device);

}  // namespace vfm::models
