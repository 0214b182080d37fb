// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_json.h"

#include "base/error.h"
#include "models/folder/config_json.h"

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
  c.vocabulary = integer_field(config, "vocabulary", c.vocabulary);
  c.num_attention_heads = integer_field(config, "num_attention_heads", c.num_attention_heads);
  c.attention_head_dim = integer_field(config, "attention_head_dim", c.attention_head_dim);
  c.num_key_value_heads = integer_field(config, "num_key_value_heads", c.num_key_value_heads);
  c.num_layers = integer_field(config, "num_layers", c.num_layers);
  c.text_embed_dim = integer_field(config, "text_embed_dim", c.text_embed_dim);
  c.yarn_frames = integer_field(config, "yarn_frames", c.yarn_frames);
  c.mlp_ratio = get_number(config, "mlp_ratio").value_or(c.mlp_ratio);
  c.rope_theta = get_number(config, "rope_theta").value_or(c.rope_theta);
  c.yarn_scale = get_number(config, "yarn_scale").value_or(c.yarn_scale);
  c.yarn_betas = numbers_field(config, "yarn_betas", c.yarn_betas);
  c.validate();
  return c;
}

}  // namespace vfm::models
