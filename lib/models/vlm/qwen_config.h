// What a Qwen2.5-VL is, or a Qwen2 or Qwen2.5, which is a language model alone, by its folder's
// config.json.
//
// Known are the fields at the top level, as the published folders have them, and in "text_config",
// as transformers 5 writes them; fields that are left out have the defaults of transformers 5.24.
// What is not known (another activation, positions that are stretched, sliding windows of text) is
// refused.
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
inline constexpr const char* kQwenTextType = "qwen2";  ///< which sees nothing

struct QwenConfig {
  bool sees = true;         ///< else it has no vision
  QwenVisionConfig vision;  ///< of one that sees
  QwenTextConfig text;
  /// Of one that sees nothing they are no tokens.
  std::int32_t image_token = 151655, video_token = 151656;
  std::vector<std::int32_t> ends{151645};  ///< tokens that end a text, of config.json

  /// Of the config of an HfComponent of the type kQwenType. Throws Error{usage} naming `what`, for
  /// values that are impossible or not supported.
  static QwenConfig from_json(const Json& config, std::string_view what);
  /// The same of the type kQwenTextType.
  static QwenConfig text_from_json(const Json& config, std::string_view what);
  /// All tensors, under the names that qwen_name() gives: check_tensors() of these.
  std::vector<TensorTarget> tensors() const;
};

/// A member of an object; null if it has none.
const Json& part_named(const Json& json, const char* name);

/// Throws Error{usage} naming `what` unless "hidden_act" is silu.
void need_silu(const Json& config, std::string_view what);

/// Throws Error{usage} unless `heads` of an even number of columns make `width`.
void need_heads(int width, int heads, const char* part, std::string_view what);

/// Takes the sizes of a language model that a config.json has, under the names of Llama and Qwen2,
/// for those that `c` has; key heads of 0 are as many as heads. Throws Error{usage} for impossible
/// ones.
void read_text_sizes(const Json& config, std::string_view what, QwenTextConfig& c);

/// Appends the tensors of a language model, under the names that QwenText uses.
void add_text_tensors(const QwenTextConfig& text, std::vector<TensorTarget>& targets);

/// One or several token ids, as "eos_token_id" has them. Throws Error{usage}.
std::vector<std::int32_t> token_ids(const Json& value, std::string_view what);
/// The same of one alone.
std::int32_t token_id(const Json& value, std::string_view what);

/// The name here of a tensor of a file, which old and new releases name differently:
///   visual.…, layers.N.…, embed_tokens.weight, norm.weight, lm_head.weight
/// "" for a table that is computed.
std::string qwen_name(std::string_view name);

}  // namespace vfm::models
