// SPDX-License-Identifier: Apache-2.0
#include "models/folder/published_decoder.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "models/decoder/decoder_json.h"
#include "models/folder/named_tensors.h"

namespace vfm::models {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

// The end of a layer's name, without ".weight".
constexpr std::array<NamePair, 32> kOfLayer = {{
    {"attention_norm", "input_layernorm"},
    {"attention.wq", "self_attn.q_proj"},
    {"attention.wk", "self_attn.k_proj"},
    {"attention.wv", "self_attn.v_proj"},
    {"attention.wo", "self_attn.o_proj"},
    {"attention.q_norm", "self_attn.q_norm"},
    {"attention.k_norm", "self_attn.k_norm"},
    {"cross_attention_norm", "cross_attn_layernorm"},
    {"cross_attention.wq", "cross_attn.q_proj"},
    {"cross_attention.wk", "cross_attn.k_proj"},
    {"cross_attention.wv", "cross_attn.v_proj"},
    {"cross_attention.wo", "cross_attn.o_proj"},
    {"cross_attention.q_norm", "cross_attn.q_norm"},
    {"cross_attention.k_norm", "cross_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"feed_forward.w1", "mlp.gate_proj"},
    {"feed_forward.w2", "mlp.down_proj"},
    {"feed_forward.w3", "mlp.up_proj"},
    {"self_attention.layernorm_qkv.layer_norm_weight", "input_layernorm"},
    {"self_attention.layernorm_qkv.query_weight", "self_attn.q_proj"},
    {"self_attention.layernorm_qkv.key_weight", "self_attn.k_proj"},
    {"self_attention.layernorm_qkv.value_weight", "self_attn.v_proj"},
    {"self_attention.proj", "self_attn.o_proj"},
    {"self_attention.q_norm", "self_attn.q_norm"},
    {"self_attention.k_norm", "self_attn.k_norm"},
    {"inter_attention.layernorm_query.layer_norm_weight", "cross_attn_layernorm"},
    {"inter_attention.layernorm_query.query_weight", "cross_attn.q_proj"},
    {"inter_attention.key_value.key_weight", "cross_attn.k_proj"},
    {"inter_attention.key_value.value_weight", "cross_attn.v_proj"},
    {"inter_attention.proj", "cross_attn.o_proj"},
    {"layernorm_mlp.layer_norm_weight", "post_attention_layernorm"},
    {"layernorm_mlp.fc2_weight", "mlp.down_proj"},
}};
constexpr std::string_view kGateAndUp = "layernorm_mlp.fc1_weight";
constexpr std::string_view kWeight = ".weight", kLayers = "layers.";
constexpr std::string_view kTable = "tok_embeddings.weight", kHead = "output.weight";
constexpr const char* kOurTable = "embed_tokens.weight";
constexpr const char* kOurHead = "lm_head.weight";

/// "layers.12." and the rest of the name; the first is "" of what is in no layer.
std::pair<std::string_view, std::string_view> split_layer(std::string_view name) {
  if (!name.starts_with(kLayers)) return {"", name};
  const std::size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return {"", name};
  return {name.substr(0, dot + 1), name.substr(dot + 1)};
}

/// The name today of what is in a layer.
std::string name_in_layer(std::string_view layer, std::string_view rest) {
  std::string_view stem = rest;
  if (stem.ends_with(kWeight)) stem.remove_suffix(kWeight.size());
  for (const auto& [theirs, ours] : kOfLayer)
    if (stem == theirs) return std::string(layer) + std::string(ours) + std::string(kWeight);
  return std::string(layer) + std::string(rest);
}

/// Rows [begin, end) of a tensor.
io::TensorView rows_of(const io::TensorView& tensor, std::int64_t begin, std::int64_t end) {
  io::TensorView part = tensor;
  const std::size_t row = tensor.data.size() / static_cast<std::size_t>(tensor.shape[0]);
  part.shape[0] = end - begin;
  part.data = tensor.data.subspan(static_cast<std::size_t>(begin) * row,
                                  static_cast<std::size_t>(end - begin) * row);
  return part;
}

/// Under our names; of the table all rows.
std::vector<io::TensorView> renamed_decoder(const io::TensorSet& set) {
  std::vector<io::TensorView> tensors;
  for (io::TensorView& tensor : named_today(set, kDecoderClass, Json::object())) {
    const std::string theirs = std::move(tensor.name);
    const auto [layer, rest] = split_layer(theirs);
    if (rest == kGateAndUp && !layer.empty() && !tensor.shape.empty() && tensor.shape[0] > 1) {
      const std::int64_t half = tensor.shape[0] / 2;
      for (const auto& [part, begin] :
           {std::pair{"mlp.gate_proj.weight", std::int64_t{0}}, {"mlp.up_proj.weight", half}}) {
        tensors.push_back(rows_of(tensor, begin, begin + half));
        tensors.back().name = std::string(layer) + part;
      }
      continue;
    }
    tensor.name = theirs == kTable  ? kOurTable
                  : theirs == kHead ? kOurHead
                  : layer.empty()   ? theirs
                                    : name_in_layer(layer, rest);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void need_setting(const Json& settings, const char* name, const Json& only) {
  const auto found = settings.find(name);
  if (found == settings.end() || found->is_null() || *found == only) return;
  fail_usage("the model has '{}' {}: only {} is supported", name, dump_json(*found),
             dump_json(only));
}

/// YaRN, as their inference sets it where the file does not say.
void add_yarn(Json& config, const Json& settings) {
  const bool large = config["num_layers"] == 40 && config["width"] == 5120;
  if (!get_bool(settings, "apply_yarn").value_or(large)) return;
  config["yarn_scale"] = get_number(settings, "yarn_scale").value_or(2);
  config["yarn_betas"] = {get_number(settings, "yarn_beta_fast").value_or(4),
                          get_number(settings, "yarn_beta_slow").value_or(1)};
  const Json shape = settings.value("original_latent_shape", Json());
  const bool given = shape.is_array() && shape.size() == 3;
  config["yarn_frames"] = given ? shape[0] : Json(3);
  config["yarn_rows"] = given ? shape[1] : Json(40);
}

}  // namespace

bool may_be_published_decoder(const Json& settings) {
  return !settings.contains("_class_name") && (settings.empty() || settings.contains("n_layers"));
}

bool is_published_decoder(const io::TensorSet& set) {
  bool table = false, head = false;
  for (const io::TensorView& tensor : named_today(set, kDecoderClass, Json::object())) {
    table = table || tensor.name == kTable;
    head = head || tensor.name == kHead;
  }
  return table && head;
}

Json published_decoder_config(const io::TensorSet& set, const Json& settings) {
  need_setting(settings, "norm_type", "rmsnorm");
  need_setting(settings, "norm_eps", 1e-5);
  need_setting(settings, "rope_dim", "3D");
  need_setting(settings, "insert_cross_attn_every_k_layers", 1);
  need_setting(settings, "insert_medusa_head", false);
  const NamedShapes shapes(set.path(), renamed_decoder(set));
  const std::string first = "layers.0.", text = first + "cross_attn.k_proj.weight";
  const std::int64_t head = shapes.size(first + "self_attn.q_norm.weight", 0);
  const std::int64_t queries = shapes.size(first + "self_attn.q_proj.weight", 0);
  const std::int64_t keys = shapes.size(first + "self_attn.k_proj.weight", 0);
  const std::int64_t width = shapes.size(kOurTable, 1), vocabulary = shapes.size(kOurHead, 0);
  const std::int64_t hidden = shapes.size(first + "mlp.gate_proj.weight", 0);
  if (queries % head != 0 || keys % head != 0)
    shapes.refuse(vfm::format("heads of {} in {} queries and {} keys", head, queries, keys));
  Json config;
  config["_class_name"] = kDecoderClass;
  config["vocabulary"] = vocabulary;
  config["num_attention_heads"] = queries / head;
  config["attention_head_dim"] = head;
  config["num_key_value_heads"] = keys / head;
  config["num_layers"] = shapes.count("layers.", ".self_attn.q_norm.weight");
  config["width"] = width;
  config["mlp_ratio"] = static_cast<double>(hidden) / static_cast<double>(width);
  config["text_embed_dim"] = shapes.has(text) ? shapes.size(text, 1) : 0;
  config["rope_theta"] = get_number(settings, "rope_theta").value_or(500000);
  add_yarn(config, settings);
  config["start_token"] = shapes.size(kOurTable, 0) > vocabulary;
  config["read_positions"] = true;
  config["absolute_positions"] = get_bool(settings, "apply_abs_pos_emb").value_or(shapes.has(text));
  return config;
}

std::vector<io::TensorView> published_decoder_tensors(const io::TensorSet& set,
                                                      const Json& config) {
  const std::int64_t table_rows = need_integer(config, "vocabulary", "the model") +
                                  (get_bool(config, "start_token").value_or(true) ? 1 : 0);
  std::vector<io::TensorView> tensors = renamed_decoder(set);
  for (io::TensorView& tensor : tensors)
    if (tensor.name == kOurTable && !tensor.shape.empty() && tensor.shape[0] > table_rows)
      tensor = rows_of(tensor, 0, table_rows);
  return tensors;
}

}  // namespace vfm::models
