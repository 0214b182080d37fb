// Folders of CLIP and SigLIP with two towers, or with the picture tower alone: the place of the
// picture tower's settings, and the names of its tensors.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/json_fwd.h"
#include "models/encoder/encoder_stack.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// "vision_config" of a model with two towers; else the whole configuration. The result lives as
/// long as `folder`. Throws Error{usage} if "vision_config" is not an object.
const Json& vision_config(const HfComponent& folder);

/// Names for a SelectedSet: the tower's tensors, without "vision_model." before their names. If the
/// folder has this tower alone, all tensors. Tables of numbers in old files are left out.
std::function<std::string(const std::string&)> vision_names(const HfComponent& folder);

/// The names of layers in CLIP and SigLIP.
std::string vision_layer_name(int layer, EncoderPart part);

}  // namespace vfm::models
