// The configuration of SmolVLM, SmolVLM2 or Idefics3, from config.json: a SigLIP without its head,
// whose patches are merged into tokens of a Llama.
//
// Missing fields have the defaults of transformers 5.24. Settings that are not supported (another
// language model, biases, heads of another width) are refused.
// Sources: Laurençon et al., "Building and better understanding vision-language models" (2024);
// Marafioti et al., "SmolVLM: redefining small and efficient multimodal models" (2025);
// transformers' SmolVLMConfig and Idefics3Config.
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/encoder/picture_tower.h"
#include "models/folder/load_tensors.h"
#include "models/vlm/qwen_config.h"

namespace vfm::models {

inline constexpr const char* kSmolType = "smolvlm";  ///< SmolVLM2, which takes videos
inline constexpr const char* kIdefics3Type = "idefics3";

struct SmolConfig {
  PictureTowerConfig vision;
  int merge = 2;  ///< patches along a side of a token
  QwenTextConfig text;
  std::int32_t image_token = 128257;
  std::vector<std::int32_t> ends{2};  ///< tokens that end a text, from config.json

  /// Reads the config of an HfComponent of one of the types above. Throws Error{usage} naming
  /// `what` for values that are impossible or not supported.
  static SmolConfig from_json(const Json& config, std::string_view what);
  /// All tensors, under the names that smol_name() gives, for check_tensors().
  std::vector<TensorTarget> tensors() const;
};

/// The name used here for a tensor of a file:
///   vision_model.…, connector.…, layers.N.…, embed_tokens.weight, norm.weight, lm_head.weight
/// "" for a table that is computed.
std::string smol_name(std::string_view name);
/// The name of a part of the tower's layers, for EncoderStack.
std::string smol_layer_name(int layer, EncoderPart part);

}  // namespace vfm::models
