// DINOv2: a vision transformer that was trained without texts. The vector of a picture is the class
// token after the last layer norm.
//
//   x = layers([class; patches] + places)     with layer scale
//   vector = layernorm(x[class])
//
// Pictures may differ from the model's own size (518 in the models that Meta published, which are
// used with 224). The position embeddings are then interpolated from those of the own size.
// Source: Oquab et al., "DINOv2: learning robust visual features without supervision" (2023);
// transformers' Dinov2Model for names and details.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Makes the tower of `folder`, of type "dinov2", for pictures of `size`. `folder` must outlive it.
/// Throws Error{usage} for a configuration that is not supported, such as that of the largest
/// model, with use_swiglu_ffn; Error that lists the tensors that do not fit.
std::unique_ptr<PictureTower> make_dinov2(const HfComponent& folder, PictureSize size,
                                          DType compute, Device device);

}  // namespace vfm::models
