// Translates names of tensors in files from elsewhere to the present names of diffusers and
// transformers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::models {

/// A tensor of ComfyUI's files of text encoders that holds a tokenizer's spiece.model.
inline constexpr std::string_view kInnerTokenizer = "spiece_model";

/// For each name, in order: its present name, or "" if it is not a weight of such a model (training
/// counters, computed tables, the decoder of a text model).
///
/// - Prefixes of wrappers that all names share are dropped ("module.", "net.", "model.").
/// - Diffusion networks: names of a form that the architecture lists (models/dit/foreign.h) are
///   translated.
/// - AutoencoderKLCosmos: names of NVIDIA's tokenizers are translated
///   ("encoder.down.0.block.1.conv1.0.conv3d..."). They count levels downwards; `config` has the
///   number of levels.
/// - AutoencoderKLWan: names of the authors' files are translated (models/wan_vae/names.h).
/// - t5, umt5: names of Wan's authors and of llama.cpp's GGUF files are translated. The embedding
///   is "shared.weight", whichever of its names the file has.
/// Sources: diffusers scripts/convert_cosmos_to_diffusers.py; Wan-Video/Wan2.1 wan/modules/t5.py;
/// llama.cpp's gguf-py, tensor names of T5ENCODER.
std::vector<std::string> names_today(std::string_view type, const Json& config,
                                     const std::vector<std::string>& names);

/// Returns what a tensor of a diffusion network or of a text model, `name` here, is called in a
/// file whose tensors have `names`, without prefixes. Other names stay.
std::string name_in_file(std::string_view type, const std::vector<std::string>& names,
                         const std::string& name);

}  // namespace vfm::models
