// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/text_tower.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/load_tensors.h"
#include "ops/matmul/linear.h"
#include "ops/norm/layer_norm.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

const char* kTokens = "text_model.embeddings.token_embedding.weight";
const char* kTowerPositions = "text_model.embeddings.position_embedding.weight";
const char* kLastNorm = "text_model.final_layer_norm";
const char* kClipProjection = "text_projection.weight";
const char* kSiglipHead = "text_model.head";

std::string tower_name(int layer, EncoderPart part) {
  const auto name = [part] {
    switch (part) {
      case EncoderPart::query:
        return "self_attn.q_proj";
      case EncoderPart::key:
        return "self_attn.k_proj";
      case EncoderPart::value:
        return "self_attn.v_proj";
      case EncoderPart::out:
        return "self_attn.out_proj";
      case EncoderPart::norm1:
        return "layer_norm1";
      case EncoderPart::up:
        return "mlp.fc1";
      case EncoderPart::down:
        return "mlp.fc2";
      default:
        return "layer_norm2";
    }
  };
  return fmt::format("text_model.encoder.layers.{}.{}", layer, name());
}

/// The part of a config.json about the text tower. "text_config_dict" of the oldest replaces
/// "text_config" as a whole.
Json tower_json(const Json& config, std::string_view type, std::string_view what) {
  if (type.ends_with("_text_model")) return config;
  for (const char* name : {"text_config_dict", "text_config"}) {
    const auto found = config.find(name);
    if (found == config.end() || found->is_null()) continue;
    if (!found->is_object()) fail_usage("{}: \"{}\" is not an object", what, name);
    return *found;
  }
  return Json::object();
}

}  // namespace

TextTowerConfig TextTowerConfig::from_json(const Json& config, std::string_view type,
                                           std::string_view what) {
  TextTowerConfig c;
  c.siglip = type.starts_with("siglip");
  as_usage([&] {
    const Json tower = tower_json(config, type, what);
    const auto positive = [&](const char* name, int clip, int siglip) {
      return positive_field(tower, name, c.siglip ? siglip : clip, what);
    };
    c.vocabulary = positive("vocab_size", 49408, 32000);
    c.positions = positive("max_position_embeddings", 77, 64);
    c.stack.width = positive("hidden_size", 512, 768);
    c.stack.heads = positive("num_attention_heads", 8, 12);
    c.stack.feed_forward = positive("intermediate_size", 2048, 3072);
    c.stack.layers = positive("num_hidden_layers", 12, 12);
    c.stack.epsilon =
        static_cast<float>(get_number(tower, "layer_norm_eps").value_or(c.siglip ? 1e-6 : 1e-5));
    c.stack.activation = gelu_of(
        get_string(tower, "hidden_act").value_or(c.siglip ? "gelu_pytorch_tanh" : "quick_gelu"),
        what);
    c.dim = c.siglip ? positive("projection_size", 0, c.stack.width)
                     : positive_field(config, "projection_dim", 512, what);
    if (!c.siglip) c.end = get_integer(tower, "eos_token_id").value_or(49407);
  });
  c.stack.causal = !c.siglip;
  c.stack.check(std::string(what));
  return c;
}

std::vector<TensorTarget> TextTowerConfig::tensors() const {
  const std::int64_t d = stack.width;
  const std::string norm = kLastNorm, head = kSiglipHead;
  std::vector<TensorTarget> targets{{kTokens, {vocabulary, d}, {}},
                                    {kTowerPositions, {positions, d}, {}},
                                    {norm + ".weight", {d}, {}},
                                    {norm + ".bias", {d}, {}}};
  if (siglip)
    targets.insert(targets.end(), {{head + ".weight", {dim, d}, {}}, {head + ".bias", {dim}, {}}});
  else
    targets.push_back({kClipProjection, {dim, d}, {}});
  std::vector<TensorTarget> layers = EncoderStack::tensors(stack, tower_name);
  targets.insert(targets.end(), layers.begin(), layers.end());
  return targets;
}

SelectedSet text_tower_tensors(const io::TensorSet& file) {
  return SelectedSet(file, [](const std::string& name) -> std::string {
    if (name.ends_with("embeddings.position_ids")) return {};
    // A file of the tower alone may leave its prefix out.
    for (const char* part : {"embeddings.", "encoder.layers.", "final_layer_norm.", "head."})
      if (name.starts_with(part)) return "text_model." + name;
    return name.starts_with("text_model.") || name == kClipProjection ? name : "";
  });
}

TextTower::TextTower(const TextTowerConfig& config, const io::TensorSet& weights, DType compute,
                     Device device)
    : config_(config),
      weights_(weights),
      compute_(compute),
      device_(device),
      stack_(config.stack, tower_name, weights, compute, device) {
  check_tensors(weights, config.tensors());
}

std::int64_t TextTower::pooled_token(std::span<const std::int32_t> ids) const {
  if (config_.siglip || device_ == Device::meta) return static_cast<std::int64_t>(ids.size()) - 1;
  const auto found = config_.end == 2 ? std::ranges::max_element(ids)
                                      : std::find(ids.begin(), ids.end(), config_.end);
  if (found == ids.end())
    fail("CLIP: a text has no end, token {}: do the tokenizer and '{}' belong together?",
         config_.end, weights_.path());
  return found - ids.begin();
}

Tensor TextTower::encode(std::span<const std::int32_t> ids,
                         std::span<const std::int64_t> lengths) const {
  need_lengths(ids.size(), lengths, config_.siglip ? "SigLIP" : "CLIP");
  const auto count = static_cast<std::int64_t>(lengths.size());
  if (count == 0) return Tensor({0, config_.dim});
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> pooled;
  for (const std::int64_t length : lengths) {
    if (length > config_.positions || (config_.siglip && length < config_.positions))
      fail("a text of {} tokens; the model has {} positions", length, config_.positions);
    const std::size_t begin = positions.size();
    for (std::int64_t i = 0; i < length; ++i)
      positions.push_back(static_cast<std::int32_t>(i));
    pooled.push_back(static_cast<std::int64_t>(begin) +
                     pooled_token(ids.subspan(begin, static_cast<std::size_t>(length))));
  }
  const auto use = [&](const std::string& name, DType dtype) {
    return use_weight(*weights_.find(name), dtype, device_);
  };
  const Tensor x = table_rows(*weights_.find(kTokens), ids, device_, weights_.path());
  ops::add_in_place(
      x, table_rows(*weights_.find(kTowerPositions), positions, device_, weights_.path()));
  const Tensor last = stack_.forward(x, lengths);
  const Tensor chosen({count, config_.stack.width}, DType::f32, device_);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = pooled[static_cast<std::size_t>(i)];
    copy(last.rows(row, row + 1), chosen.rows(i, i + 1));
  }
  ops::Tape tape(false);
  const std::string norm = kLastNorm, head = kSiglipHead;
  const Tensor normed = ops::layer_norm(tape, chosen, use(norm + ".weight", DType::f32),
                                        use(norm + ".bias", DType::f32), config_.stack.epsilon);
  const Tensor bias = config_.siglip ? use(head + ".bias", DType::f32) : Tensor();
  const Tensor out = ops::linear(tape, normed.to(compute_),
                                 use(config_.siglip ? head + ".weight" : kClipProjection, compute_),
                                 bias, DType::f32);
  return device_ == Device::meta ? out : out.to(Device::cpu);
}

}  // namespace vfm::models
