// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_json.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/config_json.h"

namespace vfm::models {
namespace {

constexpr std::pair<NetworkType, std::string_view> kClassNames[] = {
    {NetworkType::dit, "CosmosTransformer3DModel"},
    {NetworkType::stdit, "SpaceTimeTransformer3DModel"},
    {NetworkType::moviegen, "MovieGenTransformer3DModel"}};

std::string_view class_name(NetworkType type) {
  for (const auto& [known, name] : kClassNames)
    if (known == type) return name;
  return "";
}

NetworkType type_of(const std::string& name) {
  for (const auto& [type, known] : kClassNames)
    if (name == known) return type;
  fail_usage("model configuration: '_class_name' is '{}'; the diffusion networks are {}", name,
             fmt::join(network_class_names(), ", "));
}

// Present and null means that modulation has one matrix; absent means diffusers' default.
int adaln_lora_dim_of(const Json& config, int usual) {
  if (config.contains("adaln_lora_dim") && config["adaln_lora_dim"].is_null()) return 0;
  const int dim = integer_field(config, "adaln_lora_dim", usual);
  if (dim == 0)
    fail_usage("model configuration: 'adaln_lora_dim' is 0, not a width of 1 or more, or null");
  return dim;
}

}  // namespace

std::vector<std::string_view> network_class_names() {
  std::vector<std::string_view> names;
  for (const auto& [type, name] : kClassNames)
    names.push_back(name);
  return names;
}

Json network_config_to_json(const NetworkConfig& c) {
  Json config;
  config["_class_name"] = class_name(c.type);
  config["in_channels"] = c.in_channels;
  config["out_channels"] = c.out_channels;
  config["num_attention_heads"] = c.num_attention_heads;
  config["attention_head_dim"] = c.attention_head_dim;
  config["num_layers"] = c.num_layers;
  config["mlp_ratio"] = c.mlp_ratio;
  config["text_embed_dim"] = c.text_embed_dim;
  config["max_size"] = c.max_size;
  config["patch_size"] = c.patch_size;
  config["concat_padding_mask"] = c.concat_padding_mask;
  if (c.type == NetworkType::moviegen) {
    config["num_key_value_heads"] = c.key_value_heads();
    if (c.qk_norm) config["qk_norm"] = true;
    return config;
  }
  config["adaln_lora_dim"] = c.adaln_lora_dim == 0 ? Json() : Json(c.adaln_lora_dim);
  config["rope_scale"] = c.rope_scale;
  config["extra_pos_embed_type"] = c.learnable_positions ? Json("learnable") : Json();
  return config;
}

NetworkConfig network_config_from_json(const Json& config) {
  if (!config.is_object()) fail_usage("model configuration: not a JSON object");
  NetworkConfig c;
  if (const auto name = get_string(config, "_class_name")) c.type = type_of(*name);
  c.in_channels = integer_field(config, "in_channels", c.in_channels);
  c.out_channels = integer_field(config, "out_channels", c.out_channels);
  c.num_attention_heads = integer_field(config, "num_attention_heads", c.num_attention_heads);
  c.attention_head_dim = integer_field(config, "attention_head_dim", c.attention_head_dim);
  c.num_key_value_heads = integer_field(config, "num_key_value_heads", c.num_key_value_heads);
  c.num_layers = integer_field(config, "num_layers", c.num_layers);
  c.mlp_ratio = get_number(config, "mlp_ratio").value_or(c.mlp_ratio);
  c.text_embed_dim = integer_field(config, "text_embed_dim", c.text_embed_dim);
  c.adaln_lora_dim = adaln_lora_dim_of(config, c.adaln_lora_dim);
  c.qk_norm = get_bool(config, "qk_norm").value_or(false);
  c.max_size = numbers_field(config, "max_size", c.max_size);
  c.patch_size = numbers_field(config, "patch_size", c.patch_size);
  c.rope_scale = numbers_field(config, "rope_scale", c.rope_scale);
  c.concat_padding_mask = get_bool(config, "concat_padding_mask").value_or(c.concat_padding_mask);
  // Parts of Cosmos 2.5.
  if (get_bool(config, "use_crossattn_projection").value_or(false) ||
      get_integer(config, "controlnet_block_every_n") || get_integer(config, "img_context_dim_in"))
    fail_usage(
        "model configuration: a projection of the text, control blocks and image context are not "
        "supported");
  // Present and null means none; absent means diffusers' default.
  if (config.contains("extra_pos_embed_type")) {
    const auto type = get_string(config, "extra_pos_embed_type");
    if (type && *type != "learnable")
      fail_usage("model configuration: 'extra_pos_embed_type' is '{}', not 'learnable' or null",
                 *type);
    c.learnable_positions = type.has_value();
  }
  c.validate();
  return c;
}

}  // namespace vfm::models
