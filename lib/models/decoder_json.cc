// SPDX-License-Identifier: Apache-2.0
#include "models/decoder_json.h"

#include "base/error.h"

namespace vfm::models {

Json decoder_config_to_json(const DecoderConfig& c) {
  Json config;
  config["_class_name"] = kDecoderClass;
  config["vocabulary"] = c.vocabulary;
  config["num_attention_heads"] = c.num_attention_heads;
  config["attention_head_dim"] = c.attention_head_dim;
  config["num_key_value_heads"] = c.key_value_heads();
  config["num_layers"] = c.num_layers;
  config["mlp_ratio"] = c.mlp_ratio;
  config["text_embed_dim"] = c.text_embed_dim;
  config["rope_theta"] = c.rope_theta;
  config["yarn_scale"] = c.yarn_scale;
  config["yarn_frames"] = c.yarn_frames;
  config["yarn_betas"] = c.yarn_betas;
  return config;
}

DecoderConfig decoder_config_from_json(const Json& config) {
  if (!config.is_object()) fail_usage("model configuration: not a JSON object");
  DecoderConfig c;
  const auto integer = [&](const char* name, int& value) {
    const auto found = get_integer(config, name);
    if (found && (*found < 0 || *found > 1 << 28))
      fail_usage("model configuration: '{}' is out of range", name);
    if (found) value = static_cast<int>(*found);
  };
  const auto number = [&](const char* name, double& value) {
    value = get_number(config, name).value_or(value);
  };
  integer("vocabulary", c.vocabulary);
  integer("num_attention_heads", c.num_attention_heads);
  integer("attention_head_dim", c.attention_head_dim);
  integer("num_key_value_heads", c.num_key_value_heads);
  integer("num_layers", c.num_layers);
  integer("text_embed_dim", c.text_embed_dim);
  integer("yarn_frames", c.yarn_frames);
  number("mlp_ratio", c.mlp_ratio);
  number("rope_theta", c.rope_theta);
  number("yarn_scale", c.yarn_scale);
  if (const auto betas = config.find("yarn_betas"); betas != config.end()) {
    if (!betas->is_array() || betas->size() != 2 || !(*betas)[0].is_number() ||
        !(*betas)[1].is_number())
      fail_usage("model configuration: 'yarn_betas' must be 2 numbers");
    c.yarn_betas = betas->get<std::array<double, 2>>();
  }
  c.validate();
  return c;
}

}  // namespace vfm::models
