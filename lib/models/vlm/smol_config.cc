// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/smol_config.h"

#include "base/error.h"
#include "base/json.h"
#include "models/config_limits.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/vision_folder.h"

namespace vfm::models {
namespace {

/// An object, or none.
Json smol_part(const Json& config, const char* name, std::string_view what) {
  const Json& part = part_named(config, name);
  if (part.is_null()) return Json::object();
  if (!part.is_object()) fail_usage("{}: \"{}\" is not an object", what, name);
  return part;
}

PictureTowerConfig smol_vision_of(const Json& config, std::string_view what) {
  PictureTowerConfig fallback;
  fallback.stack = {
      .width = 1152, .heads = 16, .feed_forward = 3072, .layers = 12, .epsilon = 1e-6f};
  fallback.image_size = 224;
  fallback.patch = 32;
  PictureTowerConfig c = PictureTowerConfig::from_json(config, fallback, "gelu_pytorch_tanh", what);
  c.stack.check(std::string(what));
  return c;
}

/// "rope_parameters", or "rope_scaling" and "rope_theta" in older files.
void read_llama_positions(const Json& config, std::string_view what, QwenTextConfig& c) {
  c.theta = get_number(config, "rope_theta").value_or(10000);
  Json rope = smol_part(config, "rope_scaling", what);
  if (rope.empty()) rope = smol_part(config, "rope_parameters", what);
  c.theta = get_number(rope, "rope_theta").value_or(c.theta);
  if (!(c.theta > 0)) fail_usage("{}: \"rope_theta\" is {}", what, c.theta);
  const std::string kind =
      get_string(rope, "rope_type").value_or(get_string(rope, "type").value_or("default"));
  if (kind == "default") return;
  if (kind != "llama3")
    fail_usage("{}: rotary positions of the type '{}' are not supported", what, kind);
  const auto need = [&](const char* name) {
    const double value = get_number(rope, name).value_or(0);
    if (!(value > 0)) fail_usage("{}: \"{}\" of its rotary positions is {}", what, name, value);
    return value;
  };
  c.stretched = LlamaRope{need("factor"), need("low_freq_factor"), need("high_freq_factor"),
                          need("original_max_position_embeddings")};
  if (!(c.stretched->low < c.stretched->high))
    fail_usage("{}: \"low_freq_factor\" is not below \"high_freq_factor\"", what);
}

QwenTextConfig llama_of(const Json& config, std::string_view what) {
  if (const auto type = get_string(config, "model_type"); type && *type != "llama")
    fail_usage("{}: its language model is a {}; what works here: llama", what, *type);
  for (const char* name : {"attention_bias", "mlp_bias"})
    if (get_bool(config, name).value_or(false))
      fail_usage("{}: \"{}\" is not supported", what, name);
  QwenTextConfig c;
  c.biases = false;
  c.vocabulary = 32000;
  c.width = 4096;
  c.feed_forward = 11008;
  c.layers = c.heads = 32;
  c.key_heads = 0;
  c.positions = 2048;
  c.epsilon = 1e-6f;
  read_text_sizes(config, what, c);
  if (const int said = positive_field(config, "head_dim", c.head_dim(), what); said != c.head_dim())
    fail_usage("{}: heads of {} columns are not supported: {} of {} have {}", what, said, c.heads,
               c.width, c.head_dim());
  c.sections = {c.head_dim() / 2, 0, 0};
  read_llama_positions(config, what, c);
  return c;
}

}  // namespace

SmolConfig SmolConfig::from_json(const Json& config, std::string_view what) {
  return as_usage([&] {
    SmolConfig c;
    c.vision = smol_vision_of(smol_part(config, "vision_config", what), what);
    const Json text = smol_part(config, "text_config", what);
    c.text = llama_of(text, what);
    c.text.tied = get_bool(config, "tie_word_embeddings").value_or(false);
    c.merge = positive_field(config, "scale_factor", c.merge, what);
    if (c.merge > c.vision.side())
      fail_usage("{}: \"scale_factor\" is {}, of {} patches along a side", what, c.merge,
                 c.vision.side());
    if (const Json& token = part_named(config, "image_token_id"); !token.is_null())
      c.image_token = token_id(token, what);
    if (c.image_token >= c.text.vocabulary)
      fail_usage("{}: token {} is not in the vocabulary of {}", what, c.image_token,
                 c.text.vocabulary);
    if (const Json& ends = part_named(text, "eos_token_id"); !ends.is_null())
      c.ends = token_ids(ends, what);
    return c;
  });
}

std::vector<TensorTarget> SmolConfig::tensors() const {
  std::vector<TensorTarget> targets = EncoderStack::tensors(vision.stack, smol_layer_name);
  const std::int64_t d = vision.stack.width, side = vision.side();
  const std::string embeddings = "vision_model.embeddings.";
  targets.push_back(
      {embeddings + "patch_embedding.weight", {d, 3, vision.patch, vision.patch}, {}});
  targets.push_back({embeddings + "patch_embedding.bias", {d}, {}});
  targets.push_back({embeddings + "position_embedding.weight", {side * side, d}, {}});
  targets.push_back({"vision_model.post_layernorm.weight", {d}, {}});
  targets.push_back({"vision_model.post_layernorm.bias", {d}, {}});
  targets.push_back(
      {"connector.modality_projection.proj.weight", {text.width, d * merge * merge}, {}});
  add_text_tensors(text, targets);
  return targets;
}

std::string smol_name(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  if (name.starts_with("text_model.")) name.remove_prefix(11);
  return name.ends_with(".position_ids") || name.ends_with(".inv_freq") ? "" : std::string(name);
}

std::string smol_layer_name(int layer, EncoderPart part) {
  return "vision_model." + vision_layer_name(layer, part);
}

}  // namespace vfm::models
