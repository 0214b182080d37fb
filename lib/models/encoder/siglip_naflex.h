// SigLIP 2's image tower for pictures of any resolution (NaFlex): a picture keeps its shape,
// nearly, and has as many patches as that gives, up to a bound.
//
//   x = layers(patches + places)    places: those of a square grid, resized to the picture's
//   vector = siglip_head(x)         models/encoder/siglip_head.h
//
// A patch's numbers lie row by row, the three of a pixel together. Places are resized linearly with
// antialiasing, as PyTorch's interpolate(mode="bilinear", align_corners=False, antialias=True).
// transformers pads pictures to one number of patches and masks what is padded; here nothing is.
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

/// Of a folder of the type "siglip2" or "siglip2_vision_model", which must outlive it, for what
/// `input` makes of pictures. Throws Error{usage} for a configuration that is not supported, or
/// that does not go with the input; Error listing the tensors that do not fit.
std::unique_ptr<PictureTower> make_siglip_naflex(const HfComponent& folder,
                                                 const PictureInput& input, DType compute,
                                                 Device device);

/// The places of a grid of side x side patches [side side, D] for one of height x width: linear,
/// antialiased.
Tensor resample_places_linear(const Tensor& places, int side, int height, int width);

}  // namespace vfm::models
