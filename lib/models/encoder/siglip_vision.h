// SigLIP's image tower, and that of SigLIP 2 with a fixed resolution: no class token.
//
//   x = layers(patches + places)
//   vector = siglip_head(x)          models/encoder/siglip_head.h
//
// Texts have vectors of the same space. SigLIP 2 of any resolution is in
// models/encoder/siglip_naflex.h.
// Source: Zhai et al., "Sigmoid loss for language image pre-training" (2023); Tschannen et al.,
// "SigLIP 2" (2025); transformers' SiglipModel.get_image_features for names and details.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Of a folder of the type "siglip" or "siglip_vision_model", which must outlive it, for pictures
/// of `size`. Throws Error{usage} for a configuration that is not supported or another size; Error
/// listing the tensors that do not fit.
std::unique_ptr<PictureTower> make_siglip_vision(const HfComponent& folder, PictureSize size,
                                                 DType compute, Device device);

}  // namespace vfm::models
