// CLIP's image tower: a class token before the patches, layers between two layer norms, and the
// class token, projected to the vectors that texts have, too.
//
//   x = pre_layrnorm([class; patches] + places)     the name is so in the files
//   x = layers(x)
//   vector = visual_projection post_layernorm(x[class])
//
// Source: Radford et al., "Learning transferable visual models from natural language supervision"
// (2021); transformers' CLIPModel.get_image_features and CLIPVisionModelWithProjection for names.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Of a folder of the type "clip" or "clip_vision_model", which must outlive it, for pictures of
/// `size`. Throws Error{usage} for a configuration that is not supported or another size; Error
/// listing the tensors that do not fit.
std::unique_ptr<PictureTower> make_clip_vision(const HfComponent& folder, PictureSize size,
                                               DType compute, Device device);

}  // namespace vfm::models
