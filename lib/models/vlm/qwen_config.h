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

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/folder/load_tensors.h"

namespace vfm::models {

inline constexpr const char* kQwenType = "qwen2_5_vl";
inline constexpr const char* kQwenTextType = "qwen2";  ///< which sees nothing

/// The tower that sees.
struct QwenVisionConfig {
  int depth = 32, width = 3584, feed_forward = 3420, heads = 16;
  int patch = 14;          ///< pixels along a side
  int temporal_patch = 2;  ///< frames
  int merge = 2;           ///< patches along a side of what becomes a token
  int window = 112;        ///< pixels along a side of what attends to itself
  int out_width = 3584;    ///< of the tokens: that of the language model
  int tokens_per_second = 4;
  std::vector<int> full_blocks{7, 15, 23, 31};  ///< blocks that attend over whole frames

  int patch_elements() const { return 3 * temporal_patch * patch * patch; }
  int merged() const { return merge * merge; }
};

/// Rotary frequencies of texts longer than those that Llama 3.1 was first trained on, as its config
/// names them ("llama3"): slow ones are divided by `factor`, fast ones stay, those between change
/// from one to the other. Source: transformers' _compute_llama3_parameters.
struct LlamaRope {
  double factor = 1;
  double low = 1, high = 4;  ///< turns in `original` tokens: fewer is slow, more is fast
  double original = 8192;    ///< tokens

  double frequency(double plain) const;
};

/// The language model: Qwen2, or Llama (models/vlm/smol_config.h).
struct QwenTextConfig {
  int vocabulary = 152064, width = 8192, feed_forward = 29568, layers = 80, heads = 64;
  int key_heads = 8;
  float epsilon = 1e-5f;
  double theta = 1e6;
  std::array<int, 3> sections{16, 24, 24};  ///< pairs of a head turned by time, row, column
  int positions = 32768;                    ///< tokens of a prompt and its answer, at most
  bool tied = false;                        ///< the table of words is the last matrix, too
  bool biases = true;                       ///< of queries, keys and values
  std::optional<LlamaRope> stretched = {};  ///< none: frequencies are theta's

  int head_dim() const { return width / heads; }
};

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
