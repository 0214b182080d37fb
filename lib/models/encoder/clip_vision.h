// CLIP's image tower: a class token before the patches, layers between two layer norms, then the
// class token is projected to the space of the texts' vectors.
//
//   x = pre_layrnorm([class; patches] + places)     pre_layrnorm is spelled so in the files
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

/// Makes the tower of `folder`, of type "clip" or "clip_vision_model", for pictures of `size`.
/// `folder` must outlive it. Throws Error{usage} for a configuration that is not supported or a
/// size that is not the model's; Error that lists the tensors that do not fit.
std::unique_ptr<PictureTower> make_clip_vision(const HfComponent& folder, PictureSize size,
                                               DType compute, Device device);

}  // namespace vfm::models
