// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_json.h"

#include "base/error.h"
#include "base/json.h"
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
  // What came later is there only where it says something: other models' files stay as they are.
  if (c.width() != c.heads_width()) config["width"] = c.width();
  if (c.yarn_rows > 0) config["yarn_rows"] = c.yarn_rows;
  if (!c.start_token) config["start_token"] = false;
  if (c.read_positions) config["read_positions"] = true;
  if (c.absolute_positions) config["absolute_positions"] = true;
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
  c.stream_width = integer_field(config, "width", c.stream_width);
  if (c.stream_width == c.heads_width()) c.stream_width = 0;
  c.yarn_rows = integer_field(config, "yarn_rows", c.yarn_rows);
  c.start_token = get_bool(config, "start_token").value_or(c.start_token);
  c.read_positions = get_bool(config, "read_positions").value_or(c.read_positions);
  c.absolute_positions = get_bool(config, "absolute_positions").value_or(c.absolute_positions);
  c.validate();
  return c;
}

}  // namespace vfm::models
