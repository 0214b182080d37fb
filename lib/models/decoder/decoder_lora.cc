// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_lora.h"

#include <cstdint>

#include "base/format.h"

namespace vfm::models {

std::vector<NetworkMatrix> decoder_matrices(const DecoderConfig& c) {
  const std::int64_t d = c.width(), heads = c.heads_width();
  const std::int64_t keys = std::int64_t{c.key_value_heads()} * c.attention_head_dim;
  std::vector<NetworkMatrix> all;
  const auto attention = [&](const std::string& name, std::int64_t from) {
    all.push_back({name + "q_proj", heads, d});
    all.push_back({name + "k_proj", keys, from});
    all.push_back({name + "v_proj", keys, from});
    all.push_back({name + "o_proj", d, heads});
  };
  for (int i = 0; i < c.num_layers; ++i) {
    const std::string layer = vfm::format("layers.{}.", i);
    attention(layer + "self_attn.", d);
    if (c.text_embed_dim > 0) attention(layer + "cross_attn.", c.text_embed_dim);
    for (const char* name : {"gate_proj", "up_proj"})
      all.push_back({layer + "mlp." + name, c.hidden(), d});
    all.push_back({layer + "mlp.down_proj", d, c.hidden()});
  }
  return all;
}

std::vector<std::string> lora_target_names(const DecoderConfig& /*config*/,
                                           const LoraOptions& options) {
  if (!options.targets.empty()) return options.targets;
  return {"q_proj", "k_proj", "v_proj", "o_proj"};
}

std::vector<NetworkMatrix> lora_targets(const DecoderConfig& config, const LoraOptions& options) {
  return named_matrices(decoder_matrices(config), lora_target_names(config, options));
}

std::vector<nn::AdapterShape> lora_shapes(const DecoderConfig& config, const LoraOptions& options) {
  return adapter_shapes(lora_targets(config, options), options);
}

}  // namespace vfm::models
