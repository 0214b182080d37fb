// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_config.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "models/config_limits.h"
#include "models/encoder/encoder_folder.h"

namespace vfm::models {
namespace {

constexpr int kMostTokenSide = 64;  // pixels

QwenVisionConfig vision_of(const Json& given, std::string_view what) {
  if (!given.is_null() && !given.is_object())
    fail_usage("{}: \"vision_config\" is not an object", what);
  const Json config = given.is_null() ? Json::object() : given;
  QwenVisionConfig c;
  const auto read = [&](const char* name, int& value) {
    value = positive_field(config, name, value, what);
  };
  read("depth", c.depth);
  read("hidden_size", c.width);
  read("intermediate_size", c.feed_forward);
  read("num_heads", c.heads);
  read("patch_size", c.patch);
  read("temporal_patch_size", c.temporal_patch);
  read("spatial_merge_size", c.merge);
  read("window_size", c.window);
  read("out_hidden_size", c.out_width);
  read("tokens_per_second", c.tokens_per_second);
  need_silu(config, what);
  need_heads(c.width, c.heads, "vision tower", what);
  if (c.width / c.heads % 4 != 0)
    fail_usage("{}: {} columns of a head do not hold two axes", what, c.width / c.heads);
  for (const char* name : {"in_channels", "in_chans"})
    if (positive_field(config, name, 3, what) != 3)
      fail_usage("{}: its pictures do not have 3 channels", what);
  // So that what is seen fits in memory, whatever a stranger's file says.
  if (c.depth > kMostLayers || c.patch > kMostTokenSide || c.temporal_patch > 8 ||
      c.merge > kMostTokenSide / c.patch || c.window < c.patch * c.merge)
    fail_usage("{}: its vision tower has impossible sizes", what);
  if (const Json& rope = part_named(config, "rope_parameters"); rope.is_object()) {
    const std::string kind = get_string(rope, "rope_type").value_or("axial");
    const double theta = get_number(rope, "rope_theta").value_or(10000);
    if ((kind != "axial" && kind != "default") || theta != 10000)
      fail_usage("{}: rotary positions of pictures of the type '{}' and theta {} are not supported",
                 what, kind, theta);
  }
  if (const Json& blocks = part_named(config, "fullatt_block_indexes"); !blocks.is_null()) {
    c.full_blocks.clear();
    for (const std::int32_t block : token_ids(blocks, what))
      c.full_blocks.push_back(block);
  }
  return c;
}

/// Theta and, of one that sees, sections of "rope_parameters", or of "rope_scaling" and
/// "rope_theta" in older files.
void read_positions(const Json& config, std::string_view what, bool sees, QwenTextConfig& c) {
  const Json* rope = &part_named(config, "rope_scaling");
  if (!rope->is_object()) rope = &part_named(config, "rope_parameters");
  c.theta = get_number(config, "rope_theta").value_or(c.theta);
  if (rope->is_object()) {
    const std::string kind =
        get_string(*rope, "rope_type").value_or(get_string(*rope, "type").value_or("default"));
    if (kind != "default" && !(sees && kind == "mrope"))
      fail_usage("{}: rotary positions of the type '{}' are not supported", what, kind);
    c.theta = get_number(*rope, "rope_theta").value_or(c.theta);
    const Json& sections = part_named(*rope, "mrope_section");
    if (sees && !sections.is_null()) {
      const std::vector<std::int32_t> counts = token_ids(sections, what);
      if (counts.size() != 3) fail_usage("{}: \"mrope_section\" has not three numbers", what);
      std::copy(counts.begin(), counts.end(), c.sections.begin());
    }
  }
  if (!(c.theta > 0)) fail_usage("{}: \"rope_theta\" is {}", what, c.theta);
  if (std::int64_t{c.sections[0]} + c.sections[1] + c.sections[2] != c.head_dim() / 2)
    fail_usage("{}: the parts of \"mrope_section\" are not the {} pairs of a head", what,
               c.head_dim() / 2);
}

/// Sizes of transformers' Qwen2Config.
QwenTextConfig text_alone() {
  QwenTextConfig c;
  c.vocabulary = 151936;
  c.width = 4096;
  c.feed_forward = 22016;
  c.layers = c.heads = c.key_heads = 32;
  c.epsilon = 1e-6f;
  c.theta = 1e4;
  return c;
}

/// Of a layer that looks back as far as a window only.
bool has_windows(const Json& config, int layers, int first, std::string_view what) {
  const Json& types = part_named(config, "layer_types");
  if (types.is_array())
    return std::any_of(types.begin(), types.end(),
                       [](const Json& type) { return type != "full_attention"; });
  return get_bool(config, "use_sliding_window").value_or(false) &&
         positive_field(config, "max_window_layers", first, what) < layers;
}

/// `c`: what is not said.
QwenTextConfig text_of(const Json& config, std::string_view what, bool sees, QwenTextConfig c) {
  read_text_sizes(config, what, c);
  if (has_windows(config, c.layers, sees ? 80 : 28, what))
    fail_usage("{}: sliding windows of text are not supported", what);
  // All three places of a word are equal, so it does not matter which pairs are turned by which.
  if (!sees) c.sections = {c.head_dim() / 2, 0, 0};
  read_positions(config, what, sees, c);
  return c;
}

void add_linear(std::vector<TensorTarget>& targets, const std::string& name, std::int64_t out,
                std::int64_t in, bool bias) {
  targets.push_back({name + ".weight", {out, in}, {}});
  if (bias) targets.push_back({name + ".bias", {out}, {}});
}

void add_vision(std::vector<TensorTarget>& targets, const QwenVisionConfig& vision) {
  const std::int64_t v = vision.width, vf = vision.feed_forward, merged = v * vision.merged();
  targets.push_back({"visual.patch_embed.proj.weight",
                     {v, 3, vision.temporal_patch, vision.patch, vision.patch},
                     {}});
  for (int i = 0; i < vision.depth; ++i) {
    const std::string block = fmt::format("visual.blocks.{}.", i);
    for (const char* norm : {"norm1", "norm2"})
      targets.push_back({block + norm + ".weight", {v}, {}});
    add_linear(targets, block + "attn.qkv", 3 * v, v, true);
    add_linear(targets, block + "attn.proj", v, v, true);
    add_linear(targets, block + "mlp.gate_proj", vf, v, true);
    add_linear(targets, block + "mlp.up_proj", vf, v, true);
    add_linear(targets, block + "mlp.down_proj", v, vf, true);
  }
  targets.push_back({"visual.merger.ln_q.weight", {v}, {}});
  add_linear(targets, "visual.merger.mlp.0", merged, merged, true);
  add_linear(targets, "visual.merger.mlp.2", vision.out_width, merged, true);
}

}  // namespace

const Json& part_named(const Json& json, const char* name) {
  static const Json kNothing;
  const auto found = json.find(name);
  return found == json.end() ? kNothing : *found;
}

void need_silu(const Json& config, std::string_view what) {
  const std::string activation = get_string(config, "hidden_act").value_or("silu");
  if (activation != "silu")
    fail_usage("{}: the activation '{}' is not supported: silu is", what, activation);
}

void need_heads(int width, int heads, const char* part, std::string_view what) {
  if (heads > width || width % heads != 0 || width / heads % 2 != 0)
    fail_usage("{}: a {} of {} columns has no {} heads", what, part, width, heads);
}

void read_text_sizes(const Json& config, std::string_view what, QwenTextConfig& c) {
  const auto read = [&](const char* name, int& value) {
    value = positive_field(config, name, value, what);
  };
  read("vocab_size", c.vocabulary);
  read("hidden_size", c.width);
  read("intermediate_size", c.feed_forward);
  read("num_hidden_layers", c.layers);
  read("num_attention_heads", c.heads);
  read("max_position_embeddings", c.positions);
  const char* keys = "num_key_value_heads";
  if (c.key_heads == 0 || (config.contains(keys) && config.at(keys).is_null()))
    c.key_heads = c.heads;
  read(keys, c.key_heads);
  c.epsilon = static_cast<float>(get_number(config, "rms_norm_eps").value_or(double{c.epsilon}));
  need_silu(config, what);
  need_heads(c.width, c.heads, "language model", what);
  if (c.heads % c.key_heads != 0)
    fail_usage("{}: {} heads do not share {} key heads", what, c.heads, c.key_heads);
  if (c.layers > kMostLayers) fail_usage("{}: {} layers are too many", what, c.layers);
  if (!(c.epsilon > 0)) fail_usage("{}: \"rms_norm_eps\" is {}", what, c.epsilon);
}

void add_text_tensors(const QwenTextConfig& text, std::vector<TensorTarget>& targets) {
  const std::int64_t d = text.width, f = text.feed_forward;
  const std::int64_t keys = std::int64_t{text.key_heads} * text.head_dim();
  targets.push_back({"embed_tokens.weight", {text.vocabulary, d}, {}});
  for (int i = 0; i < text.layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      targets.push_back({layer + norm + ".weight", {d}, {}});
    add_linear(targets, layer + "self_attn.q_proj", d, d, text.biases);
    add_linear(targets, layer + "self_attn.k_proj", keys, d, text.biases);
    add_linear(targets, layer + "self_attn.v_proj", keys, d, text.biases);
    add_linear(targets, layer + "self_attn.o_proj", d, d, false);
    add_linear(targets, layer + "mlp.gate_proj", f, d, false);
    add_linear(targets, layer + "mlp.up_proj", f, d, false);
    add_linear(targets, layer + "mlp.down_proj", d, f, false);
  }
  targets.push_back({"norm.weight", {d}, {}});
  if (!text.tied) targets.push_back({"lm_head.weight", {text.vocabulary, d}, {}});
}

std::vector<std::int32_t> token_ids(const Json& value, std::string_view what) {
  std::vector<std::int32_t> ids;
  const auto take = [&](const Json& id) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() > (1 << 30) || ids.size() == 4096)
      fail_usage("{}: {} is not a list of token ids or block numbers", what, dump_json(value));
    ids.push_back(id.get<std::int32_t>());
  };
  if (value.is_array())
    std::for_each(value.begin(), value.end(), take);
  else
    take(value);
  return ids;
}

std::int32_t token_id(const Json& value, std::string_view what) {
  const std::vector<std::int32_t> ids = token_ids(value, what);
  if (ids.size() != 1) fail_usage("{}: {} is not one token", what, dump_json(value));
  return ids[0];
}

QwenConfig QwenConfig::from_json(const Json& config, std::string_view what) {
  return as_usage([&] {
    QwenConfig c;
    const Json& inner = part_named(config, "text_config");
    const Json& text = inner.is_object() ? inner : config;
    c.vision = vision_of(part_named(config, "vision_config"), what);
    c.text = text_of(text, what, true, {});
    const auto id = [&](const char* name, std::int32_t fallback) {
      const Json& value = part_named(config, name);
      return value.is_null() ? fallback : token_id(value, what);
    };
    c.image_token = id("image_token_id", c.image_token);
    c.video_token = id("video_token_id", c.video_token);
    if (const Json& ends = part_named(text, "eos_token_id"); !ends.is_null())
      c.ends = token_ids(ends, what);
    c.text.tied = get_bool(config, "tie_word_embeddings").value_or(false) ||
                  get_bool(text, "tie_word_embeddings").value_or(false);
    if (c.vision.out_width != c.text.width)
      fail_usage("{}: what it sees has {} columns, its language model {}", what, c.vision.out_width,
                 c.text.width);
    for (const std::int32_t token : {c.image_token, c.video_token})
      if (token >= c.text.vocabulary)
        fail_usage("{}: token {} is not in the vocabulary of {}", what, token, c.text.vocabulary);
    return c;
  });
}

QwenConfig QwenConfig::text_from_json(const Json& config, std::string_view what) {
  return as_usage([&] {
    QwenConfig c;
    c.sees = false;
    c.image_token = c.video_token = -1;
    c.text = text_of(config, what, false, text_alone());
    if (positive_field(config, "head_dim", c.text.head_dim(), what) != c.text.head_dim())
      fail_usage("{}: heads of another width than the model's by their number are not supported",
                 what);
    if (const Json& ends = part_named(config, "eos_token_id"); !ends.is_null())
      c.ends = token_ids(ends, what);
    c.text.tied = get_bool(config, "tie_word_embeddings").value_or(false);
    return c;
  });
}

std::vector<TensorTarget> QwenConfig::tensors() const {
  std::vector<TensorTarget> targets;
  if (sees) add_vision(targets, vision);
  add_text_tensors(text, targets);
  return targets;
}

std::string qwen_name(std::string_view name) {
  for (const std::string_view before : {"model.", "language_model.", "model."})
    if (name.starts_with(before)) name.remove_prefix(before.size());
  return name.ends_with(".inv_freq") ? "" : std::string(name);
}

}  // namespace vfm::models
