// SigLIP 2's image tower for pictures of any resolution (NaFlex). A picture nearly keeps its aspect
// ratio, and its number of patches follows from that, up to a limit.
//
//   x = layers(patches + places)    places: those of a square grid, resized to the picture's
//   vector = siglip_head(x)         models/encoder/siglip_head.h
//
// The numbers of a patch lie row by row, with the three of a pixel together. Places are resized
// linearly with antialiasing, as PyTorch's interpolate(mode="bilinear", align_corners=False,
// antialias=True). transformers pads pictures to one number of patches and masks the padding; here
// nothing is padded.
// Source: Tschannen et al., "SigLIP 2: multilingual vision-language encoders with improved semantic
// understanding, localization, and dense features" (2025); transformers' Siglip2Model for names and
// details.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Makes the tower of `folder`, of type "siglip2" or "siglip2_vision_model", for pictures
/// preprocessed by `input`. `folder` must outlive it. Throws Error{usage} for a configuration that
/// is not supported or does not fit `input`; Error that lists the tensors that do not fit.
std::unique_ptr<PictureTower> make_siglip_naflex(const HfComponent& folder,
                                                 const PictureInput& input, DType compute,
                                                 Device device);

/// Resizes the places of a grid of side x side patches, [side side, D], to a grid of height x width
/// patches: linear, antialiased.
Tensor resample_places_linear(const Tensor& places, int side, int height, int width);

}  // namespace vfm::models
