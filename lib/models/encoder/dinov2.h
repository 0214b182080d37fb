// DINOv2: a vision transformer that was trained without texts. Its vector of a picture is the class
// token after the last layer norm.
//
//   x = layers([class; patches] + places)     with layer scale
//   vector = layernorm(x[class])
//
// Pictures may have another size than the model's own (518 in those that Meta published, used with
// 224): the places are then those of the own size, interpolated.
// Source: Oquab et al., "DINOv2: learning robust visual features without supervision" (2023);
// transformers' Dinov2Model for names and details.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Of a folder of the type "dinov2", which must outlive it, for pictures of `size`. Throws
/// Error{usage} for a configuration that is not supported: so is that of the largest, with
/// use_swiglu_ffn; Error listing the tensors that do not fit.
std::unique_ptr<PictureTower> make_dinov2(const HfComponent& folder, PictureSize size,
                                          DType compute, Device device);

}  // namespace vfm::models
