// SPDX-License-Identifier: Apache-2.0
#include "models/folder/published_decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "models/decoder/decoder_json.h"

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
constexpr std::int64_t kMostPublishedLayers = 1 << 20;
constexpr std::string_view kGateAndUp = "layernorm_mlp.fc1_weight";
constexpr std::string_view kWeight = ".weight", kLayers = "layers.", kModel = "model.";
constexpr std::string_view kTable = "tok_embeddings.weight", kHead = "output.weight";

std::string_view plain_name(std::string_view name) {
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  return name;
}

const io::TensorView* find_plain(const io::TensorSet& set, std::string_view name) {
  const io::TensorView* found = set.find(name);
  return found ? found : set.find(std::string(kModel) + std::string(name));
}

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

/// What the shapes of the tensors say.
class DecoderShapes {
 public:
  explicit DecoderShapes(const io::TensorSet& set) {
    for (const io::TensorView& tensor : set.tensors()) {
      const auto [layer, rest] = split_layer(plain_name(tensor.name));
      if (layer.empty()) continue;
      std::int64_t number = -1;
      std::from_chars(layer.data() + kLayers.size(), layer.data() + layer.size(), number);
      layers_ = std::max(layers_, std::min(number, kMostPublishedLayers) + 1);
      if (number != 0) continue;
      if (rest == kGateAndUp) hidden_ = rows(tensor) / 2;
      first_.push_back({name_in_layer("", rest), &tensor});
    }
    const auto* table = find_plain(set, kTable);
    const auto* head = find_plain(set, kHead);
    if (!table || !head || table->shape.size() != 2 || head->shape.size() != 2)
      fail_usage("'{}' has names of Cosmos' autoregressive models, but no {} or {}", set.path(),
                 kTable, kHead);
    table_rows_ = table->shape[0];
    width_ = table->shape[1];
    vocabulary_ = head->shape[0];
    if (hidden_ == 0) hidden_ = size("mlp.gate_proj.weight", 0);
  }

  std::int64_t layers() const { return layers_; }
  std::int64_t width() const { return width_; }
  std::int64_t hidden() const { return hidden_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t table_rows() const { return table_rows_; }
  /// Of a tensor of the first layer, by our name; 0: there is none.
  std::int64_t size(std::string_view name, std::size_t dim) const {
    for (const auto& [ours, tensor] : first_)
      if (ours == name) return dim < tensor->shape.size() ? tensor->shape[dim] : 0;
    return 0;
  }

 private:
  static std::int64_t rows(const io::TensorView& tensor) {
    return tensor.shape.empty() ? 0 : tensor.shape[0];
  }
  std::int64_t layers_ = 0, width_ = 0, hidden_ = 0, vocabulary_ = 0, table_rows_ = 0;
  std::vector<std::pair<std::string, const io::TensorView*>> first_;
};

void need_setting(const Json& settings, const char* name, const Json& only) {
  const auto found = settings.find(name);
  if (found == settings.end() || found->is_null() || *found == only) return;
  fail_usage("the model has '{}' {}: there is {}", name, dump_json(*found), dump_json(only));
}

/// YaRN, as their inference sets it where the file does not say.
void add_yarn(Json& config, const Json& settings, const DecoderShapes& shapes) {
  const bool large = shapes.layers() == 40 && shapes.width() == 5120;
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
  return find_plain(set, kTable) != nullptr && find_plain(set, kHead) != nullptr;
}

Json published_decoder_config(const io::TensorSet& set, const Json& settings) {
  need_setting(settings, "norm_type", "rmsnorm");
  need_setting(settings, "norm_eps", 1e-5);
  need_setting(settings, "insert_cross_attn_every_k_layers", 1);
  need_setting(settings, "insert_medusa_head", false);
  const DecoderShapes shapes(set);
  const std::int64_t head = shapes.size("self_attn.q_norm.weight", 0);
  const std::int64_t queries = shapes.size("self_attn.q_proj.weight", 0);
  const std::int64_t keys = shapes.size("self_attn.k_proj.weight", 0);
  const std::int64_t text = shapes.size("cross_attn.k_proj.weight", 1);
  if (head <= 0 || queries % head != 0 || keys % head != 0 || keys == 0 || shapes.width() <= 0)
    fail_usage(
        "'{}' is no autoregressive model of Cosmos-1.0: heads of {} in {} queries and {} keys",
        set.path(), head, queries, keys);
  const bool start = shapes.table_rows() > shapes.vocabulary();
  Json config;
  config["_class_name"] = kDecoderClass;
  config["vocabulary"] = shapes.vocabulary();
  config["num_attention_heads"] = queries / head;
  config["attention_head_dim"] = head;
  config["num_key_value_heads"] = keys / head;
  config["num_layers"] = shapes.layers();
  config["width"] = shapes.width();
  config["mlp_ratio"] = static_cast<double>(shapes.hidden()) / static_cast<double>(shapes.width());
  config["text_embed_dim"] = text;
  config["rope_theta"] = get_number(settings, "rope_theta").value_or(500000);
  add_yarn(config, settings, shapes);
  config["start_token"] = start;
  config["read_positions"] = true;
  config["absolute_positions"] = get_bool(settings, "apply_abs_pos_emb").value_or(text > 0);
  return config;
}

std::vector<io::TensorView> published_decoder_tensors(const io::TensorSet& set,
                                                      const Json& config) {
  const std::int64_t table_rows = need_integer(config, "vocabulary", "the model") +
                                  (get_bool(config, "start_token").value_or(true) ? 1 : 0);
  std::vector<io::TensorView> tensors;
  for (const io::TensorView& tensor : set.tensors()) {
    // State of FP8, of no use without its program.
    if (tensor.name.find("_extra_state") != std::string::npos) continue;
    const std::string_view name = plain_name(tensor.name);
    const auto [layer, rest] = split_layer(name);
    if (rest == kGateAndUp && !layer.empty() && !tensor.shape.empty() && tensor.shape[0] > 1) {
      const std::int64_t half = tensor.shape[0] / 2;
      for (const auto& [part, begin] :
           {std::pair{"mlp.gate_proj.weight", std::int64_t{0}}, {"mlp.up_proj.weight", half}}) {
        tensors.push_back(rows_of(tensor, begin, begin + half));
        tensors.back().name = std::string(layer) + part;
      }
      continue;
    }
    tensors.push_back(name == kTable && !tensor.shape.empty() && tensor.shape[0] > table_rows
                          ? rows_of(tensor, 0, table_rows)
                          : tensor);
    tensors.back().name = name == kTable  ? "embed_tokens.weight"
                          : name == kHead ? "lm_head.weight"
                          : layer.empty() ? std::string(name)
                                          : name_in_layer(layer, rest);
  }
  return tensors;
}

}  // namespace vfm::models
