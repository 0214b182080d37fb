// SPDX-License-Identifier: Apache-2.0
#include "models/dit/lora.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/format.h"

namespace vfm::models {
namespace {

/// Those of one block, without its name.
std::vector<NetworkMatrix> block_matrices(const NetworkConfig& c) {
  const std::int64_t d = c.width(), e = c.text_embed_dim, low = c.adaln_lora_dim;
  const std::int64_t keys = std::int64_t{c.key_value_heads()} * c.attention_head_dim;
  std::vector<NetworkMatrix> all;
  const auto attention = [&](const std::string& name, std::int64_t from) {
    all.push_back({name + ".to_q", d, d});
    all.push_back({name + ".to_k", keys, from});
    all.push_back({name + ".to_v", keys, from});
    all.push_back({name + (c.type == NetworkType::moviegen ? ".to_out" : ".to_out.0"), d, d});
  };
  attention("attn1", d);
  attention("attn2", e);
  if (c.type == NetworkType::moviegen) {
    for (const char* name : {"norm1.linear", "norm2.linear"})
      all.push_back({name, 3 * d, d});
    for (const char* name : {"ff.gate_proj", "ff.up_proj"})
      all.push_back({name, c.hidden(), d});
    all.push_back({"ff.down_proj", d, c.hidden()});
    return all;
  }
  std::vector<std::string> norms = {"norm1", "norm2", "norm3"};
  if (c.type == NetworkType::stdit)
    for (const char* reach : {"spatial", "temporal"}) {
      attention(std::string("attn_") + reach, d);
      norms.push_back(std::string("norm_") + reach);
    }
  for (const std::string& norm : norms) {
    if (low > 0) all.push_back({norm + ".linear_1", low, d});
    all.push_back({norm + ".linear_2", 3 * d, low > 0 ? low : d});
  }
  all.push_back({"ff.net.0.proj", c.hidden(), d});
  all.push_back({"ff.net.2", d, c.hidden()});
  return all;
}

/// "to_q" of "attn1.to_q", "to_out.0" of "attn1.to_out.0".
std::string last_word(const std::string& module) {
  std::size_t dot = module.rfind('.');
  if (dot != std::string::npos && dot + 2 == module.size()) dot = module.rfind('.', dot - 1);
  return dot == std::string::npos ? module : module.substr(dot + 1);
}

}  // namespace

std::vector<NetworkMatrix> network_matrices(const NetworkConfig& c) {
  const std::int64_t d = c.width(), low = c.adaln_lora_dim;
  const auto& p = c.patch_size;
  const std::int64_t patch = std::int64_t{p[0]} * p[1] * p[2];
  std::vector<NetworkMatrix> all = {
      {"patch_embed.proj", d, (c.in_channels + (c.concat_padding_mask ? 1 : 0)) * patch},
      {"proj_out", patch * c.out_channels, d}};
  if (c.type == NetworkType::moviegen) {
    for (const char* name :
         {"time_embed.linear_1", "time_embed.linear_2", "fps_embed.linear_1", "fps_embed.linear_2"})
      all.push_back({name, d, d});
    all.push_back({"norm_out.linear", 2 * d, d});
  } else {
    all.push_back({"time_embed.t_embedder.linear_1", d, d});
    all.push_back({"time_embed.t_embedder.linear_2", 3 * d, d});
    if (low > 0) all.push_back({"norm_out.linear_1", low, d});
    all.push_back({"norm_out.linear_2", 2 * d, low > 0 ? low : d});
  }
  const std::vector<NetworkMatrix> block = block_matrices(c);
  for (int i = 0; i < c.num_layers; ++i)
    for (const NetworkMatrix& m : block)
      all.push_back({vfm::format("transformer_blocks.{}.{}", i, m.module), m.rows, m.columns});
  return all;
}

bool names_module(std::string_view target, std::string_view module) {
  if (target.empty() || !module.ends_with(target)) return false;
  return module.size() == target.size() || module[module.size() - target.size() - 1] == '.';
}

std::vector<std::string> lora_target_names(const NetworkConfig& config,
                                           const LoraOptions& options) {
  if (!options.targets.empty()) return options.targets;
  return {"to_q", "to_k", "to_v", config.type == NetworkType::moviegen ? "to_out" : "to_out.0"};
}

std::vector<NetworkMatrix> named_matrices(const std::vector<NetworkMatrix>& all,
                                          const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    const auto named = [&](const NetworkMatrix& m) { return names_module(target, m.module); };
    if (std::ranges::any_of(all, named)) continue;
    std::set<std::string> words;
    for (const NetworkMatrix& m : all)
      words.insert(last_word(m.module));
    std::string list;
    for (const std::string& word : words)
      list += (list.empty() ? "" : ", ") + word;
    fail_usage("'lora.targets': no matrix of the model is called '{}'; there are {}", target, list);
  }
  std::vector<NetworkMatrix> chosen;
  for (const NetworkMatrix& m : all)
    if (std::ranges::any_of(targets,
                            [&](const std::string& t) { return names_module(t, m.module); }))
      chosen.push_back(m);
  return chosen;
}

std::vector<AdapterShape> adapter_shapes(const std::vector<NetworkMatrix>& matrices,
                                         const LoraOptions& options) {
  std::vector<AdapterShape> shapes;
  const double alpha = options.alpha > 0 ? options.alpha : options.rank;
  for (const NetworkMatrix& m : matrices)
    shapes.push_back({m.module, options.rank, static_cast<float>(alpha / options.rank)});
  return shapes;
}

std::vector<NetworkMatrix> lora_targets(const NetworkConfig& config, const LoraOptions& options) {
  return named_matrices(network_matrices(config), lora_target_names(config, options));
}

std::vector<AdapterShape> lora_shapes(const NetworkConfig& config, const LoraOptions& options) {
  return adapter_shapes(lora_targets(config, options), options);
}

}  // namespace vfm::models
