// The configuration of Qwen2.5-VL, and of the text models Qwen2 and Qwen2.5, from config.json.
//
// Fields may be at the top level, as in the published folders, or in "text_config", as transformers
// 5 writes them. Missing fields have the defaults of transformers 5.24. Settings that are not
// supported (another activation, scaled positions, sliding windows of text) are refused.
// Sources: Bai et al., "Qwen2.5-VL technical report" (2025); transformers' Qwen2_5_VLConfig and
// Qwen2Config.
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/folder/load_tensors.h"
#include "models/vlm/qwen_sizes.h"

namespace vfm::models {

inline constexpr const char* kQwenType = "qwen2_5_vl";
inline constexpr const char* kQwenTextType = "qwen2";  ///< without vision

struct QwenConfig {
  bool sees = true;         ///< false: no vision
  QwenVisionConfig vision;  ///< used only if `sees`
  QwenTextConfig text;
  /// Without vision these are not tokens.
  std::int32_t image_token = 151655, video_token = 151656;
  std::vector<std::int32_t> ends{151645};  ///< tokens that end a text, from config.json

  /// Reads the config of an HfComponent of type kQwenType. Throws Error{usage} naming `what` for
  /// values that are impossible or not supported.
  static QwenConfig from_json(const Json& config, std::string_view what);
  /// The same for type kQwenTextType.
  static QwenConfig text_from_json(const Json& config, std::string_view what);
  /// All tensors, under the names that qwen_name() gives, for check_tensors().
  std::vector<TensorTarget> tensors() const;
};

/// A member of a JSON object; null if there is none.
const Json& part_named(const Json& json, const char* name);

/// Throws Error{usage} naming `what` unless "hidden_act" is silu.
void need_silu(const Json& config, std::string_view what);

/// Throws Error{usage} unless `heads` heads with an even number of columns make `width`.
void need_heads(int width, int heads, const char* part, std::string_view what);

/// Reads the sizes of a language model from a config.json, under the names of Llama and Qwen2. `c`
/// has the values of missing fields; key_heads 0 means as many as heads. Throws Error{usage} for
/// impossible sizes.
void read_text_sizes(const Json& config, std::string_view what, QwenTextConfig& c);

/// Appends the tensors of a language model, under the names that QwenText uses.
void add_text_tensors(const QwenTextConfig& text, std::vector<TensorTarget>& targets);

/// One or several token ids, as in "eos_token_id". Throws Error{usage}.
std::vector<std::int32_t> token_ids(const Json& value, std::string_view what);
/// A single token id. Throws Error{usage}.
std::int32_t token_id(const Json& value, std::string_view what);

/// The name used here for a tensor of a file. Old and new releases use different names in files:
///   visual.…, layers.N.…, embed_tokens.weight, norm.weight, lm_head.weight
/// "" for a table that is computed.
std::string qwen_name(std::string_view name);

}  // namespace vfm::models
