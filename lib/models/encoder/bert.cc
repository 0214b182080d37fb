// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/bert.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/load_tensors.h"
#include "ops/norm/layer_norm.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

const char* kWords = "embeddings.word_embeddings.weight";
const char* kPositions = "embeddings.position_embeddings.weight";
const char* kTypes = "embeddings.token_type_embeddings.weight";
const char* kNormWeight = "embeddings.LayerNorm.weight";
const char* kNormBias = "embeddings.LayerNorm.bias";

std::string bert_name(int layer, EncoderPart part) {
  const auto name = [part] {
    switch (part) {
      case EncoderPart::query:
        return "attention.self.query";
      case EncoderPart::key:
        return "attention.self.key";
      case EncoderPart::value:
        return "attention.self.value";
      case EncoderPart::out:
        return "attention.output.dense";
      case EncoderPart::norm1:
        return "attention.output.LayerNorm";
      case EncoderPart::up:
        return "intermediate.dense";
      case EncoderPart::down:
        return "output.dense";
      default:
        return "output.LayerNorm";
    }
  };
  return fmt::format("encoder.layer.{}.{}", layer, name());
}

/// What changes the computation, and is not here.
void refuse_variants(const Json& config, std::string_view what) {
  const std::string kind = get_string(config, "position_embedding_type").value_or("absolute");
  if (kind != "absolute")
    fail_usage("{}: position_embedding_type '{}' is not supported: absolute is", what, kind);
  for (const char* field : {"is_decoder", "add_cross_attention"})
    if (get_bool(config, field).value_or(false))
      fail_usage("{}: it is a decoder (\"{}\"), not an encoder", what, field);
}

}  // namespace

BertConfig BertConfig::from_json(const Json& config, std::string_view type, std::string_view what) {
  const bool bert = type == "bert";
  BertConfig c;
  as_usage([&] {
    const auto positive = [&](const char* name, int fallback) {
      return positive_field(config, name, fallback, what);
    };
    refuse_variants(config, what);
    c.vocabulary = positive("vocab_size", bert ? 30522 : type == "roberta" ? 50265 : 30522);
    c.positions = positive("max_position_embeddings", 512);
    c.token_types = positive("type_vocab_size", 2);
    c.stack.width = positive("hidden_size", 768);
    c.stack.heads = positive("num_attention_heads", 12);
    c.stack.feed_forward = positive("intermediate_size", 3072);
    c.stack.layers = positive("num_hidden_layers", 12);
    c.stack.epsilon = static_cast<float>(get_number(config, "layer_norm_eps").value_or(1e-12));
    c.stack.activation = gelu_of(get_string(config, "hidden_act").value_or("gelu"), what);
    if (!bert) {
      const std::int64_t padding = get_integer(config, "pad_token_id").value_or(1);
      if (padding < 0 || padding >= c.positions - 1)
        fail_usage("{}: \"pad_token_id\" is {}", what, padding);
      c.first_position = static_cast<int>(padding) + 1;
    }
  });
  c.stack.norm_first = false;
  c.stack.check(std::string(what));
  return c;
}

std::vector<TensorTarget> BertConfig::tensors() const {
  const std::int64_t d = stack.width;
  std::vector<TensorTarget> targets{{kWords, {vocabulary, d}, {}},
                                    {kPositions, {positions, d}, {}},
                                    {kTypes, {token_types, d}, {}},
                                    {kNormWeight, {d}, {}},
                                    {kNormBias, {d}, {}}};
  std::vector<TensorTarget> layers = EncoderStack::tensors(stack, bert_name);
  targets.insert(targets.end(), layers.begin(), layers.end());
  return targets;
}

SelectedSet bert_tensors(const io::TensorSet& file) {
  return SelectedSet(file, [](const std::string& whole) -> std::string {
    std::string name = whole;
    for (const char* prefix : {"bert.", "roberta."})
      if (name.starts_with(prefix)) name = name.substr(std::string_view(prefix).size());
    if (!name.starts_with("embeddings.") && !name.starts_with("encoder.layer.")) return {};
    if (name == "embeddings.position_ids" || name == "embeddings.token_type_ids") return {};
    // TensorFlow's names, which the oldest files have.
    const auto rename = [&](std::string_view old, std::string_view today) {
      if (name.ends_with(old)) name.replace(name.size() - old.size(), old.size(), today);
    };
    rename("LayerNorm.gamma", "LayerNorm.weight");
    rename("LayerNorm.beta", "LayerNorm.bias");
    return name;
  });
}

Bert::Bert(const BertConfig& config, const io::TensorSet& weights, DType compute, Device device)
    : config_(config),
      weights_(weights),
      device_(device),
      stack_(config.stack, bert_name, weights, compute, device) {
  check_tensors(weights, config.tensors());
}

Tensor Bert::encode(std::span<const std::int32_t> ids,
                    std::span<const std::int64_t> lengths) const {
  need_lengths(ids.size(), lengths, "BERT");
  if (ids.empty()) return Tensor({0, config_.stack.width});
  std::vector<std::int32_t> positions;
  for (const std::int64_t length : lengths) {
    if (length > config_.most_tokens())
      fail("BERT: a text of {} tokens; the model has {} positions", length, config_.most_tokens());
    for (std::int64_t i = 0; i < length; ++i)
      positions.push_back(config_.first_position + static_cast<std::int32_t>(i));
  }
  const auto rows = [&](const char* table, std::span<const std::int32_t> numbers) {
    return table_rows(*weights_.find(table), numbers, device_, weights_.path());
  };
  const Tensor x = rows(kWords, ids);
  ops::add_in_place(x, rows(kPositions, positions));
  ops::add_in_place(x, rows(kTypes, std::vector<std::int32_t>(ids.size())));
  const auto norm = [&](const char* name) {
    return use_weight(*weights_.find(name), DType::f32, device_);
  };
  ops::Tape tape(false);
  const Tensor begin =
      ops::layer_norm(tape, x, norm(kNormWeight), norm(kNormBias), config_.stack.epsilon);
  const Tensor last = stack_.forward(begin, lengths);
  return device_ == Device::meta ? last : last.to(Device::cpu);
}

}  // namespace vfm::models
