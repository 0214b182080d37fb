// Folders of CLIP and SigLIP that hold two towers, or the one for pictures alone: where this one's
// settings are, and what its tensors are called.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/json_fwd.h"
#include "models/encoder/encoder_stack.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// "vision_config" of a model of two towers; else the whole configuration. It lives as long as
/// `folder`. Throws Error{usage} if it is no object.
const Json& vision_config(const HfComponent& folder);

/// For a SelectedSet: the tower's tensors, without "vision_model." before their names; of a folder
/// of this tower alone all of them. Without tables of numbers that old files have.
std::function<std::string(const std::string&)> vision_names(const HfComponent& folder);

/// The names of layers in both.
std::string vision_layer_name(int layer, EncoderPart part);

}  // namespace vfm::models
