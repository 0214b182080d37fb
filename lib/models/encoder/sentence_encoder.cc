// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/sentence_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "io/folder.h"
#include "models/encoder/bert.h"
#include "models/encoder/packed_text_encoder.h"
#include "models/encoder/sentence_folder.h"
#include "models/encoder/text_tower.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "text/unicode.h"

namespace vfm::models {
namespace {

/// One of the two kinds of models, with the weights that it reads.
class SentenceModel {
 public:
  /// The component must outlive it, as it is, or, `headers`, the shapes of what it ought to have
  /// alone. `shared` are the tensors to compute with in place of its own.
  SentenceModel(const HfComponent& component, DType compute, Device device,
                std::optional<DType> headers = {}, const io::TensorSet* shared = nullptr) {
    const std::string what = fmt::format("'{}'", component.config_path());
    const auto weights_of = [&](const std::vector<TensorTarget>& targets, auto select) {
      parameters_ = std::accumulate(
          targets.begin(), targets.end(), std::int64_t{0},
          [](std::int64_t sum, const TensorTarget& t) { return sum + element_count(t.shape); });
      table_ = element_count(targets.front().shape);
      if (headers)
        weights_ = std::make_unique<HeaderSet>(targets, *headers);
      else
        weights_ = std::make_unique<SelectedSet>(select(shared ? *shared : component.weights()));
    };
    if (is_text_tower(component.type())) {
      const auto config = TextTowerConfig::from_json(component.config(), component.type(), what);
      weights_of(config.tensors(), text_tower_tensors);
      dim_ = config.dim;
      tower_.emplace(config, *weights_, compute, device);
    } else {
      const auto config = BertConfig::from_json(component.config(), component.type(), what);
      weights_of(config.tensors(), bert_tensors);
      dim_ = config.stack.width;
      bert_.emplace(config, *weights_, compute, device);
    }
  }

  int dim() const { return dim_; }
  std::int64_t parameters() const { return parameters_; }
  std::int64_t table_elements() const { return table_; }
  DType stored() const { return float_type(weights_->tensors().front().dtype); }
  double bytes() const { return static_cast<double>(weights_->bytes()); }

  /// One vector a text [N, dim], as `pooling` has it.
  Tensor encode(std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths,
                Pooling pooling) const {
    if (tower_) return tower_->encode(ids, lengths);
    const Tensor states = bert_->encode(ids, lengths);
    if (states.device() == Device::meta) return states;
    Tensor pooled = Tensor::zeros({static_cast<std::int64_t>(lengths.size()), dim_});
    const float* from = states.data<float>();
    float* to = pooled.data<float>();
    for (const std::int64_t length : lengths) {
      const std::int64_t rows = pooling == Pooling::cls ? 1 : length;
      for (std::int64_t row = 0; row < rows; ++row)
        for (int i = 0; i < dim_; ++i)
          to[i] += from[row * dim_ + i];
      for (int i = 0; i < dim_; ++i)
        to[i] /= static_cast<float>(rows);
      from += length * dim_;
      to += dim_;
    }
    return pooled;
  }

 private:
  std::unique_ptr<io::TensorSet> weights_;
  std::optional<Bert> bert_;
  std::optional<TextTower> tower_;
  int dim_ = 0;
  std::int64_t parameters_ = 0, table_ = 0;
};

void scale_to_length_one(float* vector, int dim) {
  double squares = 0;
  for (int i = 0; i < dim; ++i)
    squares += double{vector[i]} * double{vector[i]};
  if (squares == 0) return;
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (int i = 0; i < dim; ++i)
    vector[i] *= scale;
}

class SentenceEncoder final : public PackedTextEncoder {
 public:
  SentenceEncoder(SentenceFolder folder, std::unique_ptr<io::TensorSet> shared,
                  text::EncoderConfig config, DType compute, Device device)
      : PackedTextEncoder(device),
        folder_(std::move(folder)),
        shared_(std::move(shared)),
        config_(std::move(config)),
        model_(*folder_.component, compute, device, {}, shared_.get()) {}

  int dim() const override { return model_.dim(); }
  text::EncoderConfig config() const override { return config_; }

  int tokens_left_out(std::string_view utf8) const override {
    const std::size_t all =
        folder_.tokenizer->encode(prepared(utf8), std::numeric_limits<std::size_t>::max()).size();
    return static_cast<int>(all - std::min(all, most_tokens()));
  }

 protected:
  std::vector<std::int32_t> tokens(std::string_view utf8) const override {
    const SentenceRule& rule = folder_.rule;
    std::vector<std::int32_t> ids = folder_.tokenizer->encode(prepared(utf8), most_tokens());
    if (ids.empty())
      fail("the tokenizer '{}' gives an empty text no token", folder_.tokenizer_file);
    if (const auto length = static_cast<std::size_t>(rule.padded_to); ids.size() < length)
      ids.insert(rule.pad_left ? ids.begin() : ids.end(), length - ids.size(), rule.padding);
    return ids;
  }

  std::vector<text::TokenEmbeddings> encode_pack(
      std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const override {
    const Tensor values = model_.encode(ids, lengths, folder_.rule.pooling);
    const float* from = values.data<float>();
    std::vector<text::TokenEmbeddings> all;
    for (std::size_t i = 0; i < lengths.size(); ++i, from += dim()) {
      all.push_back({{from, from + dim()}, 1, dim()});
      if (folder_.rule.normalised) scale_to_length_one(all.back().values.data(), dim());
    }
    return all;
  }

 private:
  std::size_t most_tokens() const { return static_cast<std::size_t>(*config_.max_tokens); }

  std::string prepared(std::string_view utf8) const {
    const SentenceRule& rule = folder_.rule;
    std::string text = text::trimmed(config_.prompt.value_or(rule.prompt) + std::string(utf8));
    if (rule.lower_case) text = text::lower_case(text);
    return rule.canonical ? text::without_punctuation(text) : text;
  }

  SentenceFolder folder_;
  std::unique_ptr<io::TensorSet> shared_;
  text::EncoderConfig config_;
  SentenceModel model_;
};

/// "sentence:bert", "sentence:clip", "sentence:siglip".
std::string encoder_name(std::string_view type) {
  return fmt::format("sentence:{}", is_text_tower(type) ? type.substr(0, type.find('_')) : type);
}

text::EncoderConfig describe_sentence(const SentenceFolder& folder, const std::string& path,
                                      int max_tokens, int dim, DType compute) {
  return {.name = encoder_name(folder.component->type()),
          .path = path,
          .hash = folder.hash,
          .dim = dim,
          .max_tokens = std::min(max_tokens, folder.rule.most_tokens),
          .compute = compute == DType::bf16 ? "bf16" : "f32",
          .rule = folder.rule.words()};
}

int dim_of(const HfComponent& component) {
  const std::string what = fmt::format("'{}'", component.config_path());
  return is_text_tower(component.type())
             ? TextTowerConfig::from_json(component.config(), component.type(), what).dim
             : BertConfig::from_json(component.config(), component.type(), what).stack.width;
}

}  // namespace

text::EncoderConfig sentence_encoder_config(const std::string& folder, int max_tokens,
                                            DType compute) {
  const SentenceFolder opened = open_sentence_folder(folder, true);
  return describe_sentence(opened, io::canonical_path(folder), max_tokens,
                           dim_of(*opened.component), compute);
}

text::EncoderConfig searched_sentence_config(const std::string& folder, int max_tokens,
                                             DType compute,
                                             const std::optional<std::string>& prompt,
                                             const std::optional<std::string>& query_prompt) {
  text::EncoderConfig config = sentence_encoder_config(folder, max_tokens, compute);
  const SentenceFolder opened = open_sentence_folder(folder, false);
  const SentencePrompts& own = opened.prompts;
  if (!prompt && !query_prompt && own.query.empty() && own.document.empty() && own.any.empty())
    return config;
  config.prompt = prompt.value_or(own.document);
  config.query_prompt = query_prompt.value_or(own.query);
  check_prompt(opened.rule, *config.prompt + *config.query_prompt, folder);
  return config;
}

std::unique_ptr<text::TextEncoder> make_sentence_encoder(const std::string& folder, int max_tokens,
                                                         DType compute,
                                                         const TextEncoderOptions& options,
                                                         const text::EncoderConfig& as) {
  SentenceFolder opened;
  text::EncoderConfig config;
  const auto agree = [&](const auto& act) { options.ranks.agree([&] { as_usage(act); }); };
  agree([&] {
    const bool hashes = options.ranks.rank() == 0 || as.hash.empty();
    opened = open_sentence_folder(folder, hashes);
    if (!hashes) opened.hash = as.hash;
    if (!as.hash.empty() && as.hash != opened.hash)
      fail_usage("'{}' is not the text encoder that the embeddings were made with", folder);
    if (max_tokens < 2) fail_usage("a sentence encoder of at most {} tokens", max_tokens);
    config = describe_sentence(opened, folder, max_tokens, dim_of(*opened.component), compute);
    config.prompt = as.prompt;
    config.query_prompt = as.query_prompt;
    check_prompt(opened.rule, as.prompt.value_or(""), folder);
    opened.component->weights();
  });
  auto shared = options.share ? options.share(opened.component->weights()) : nullptr;
  std::unique_ptr<text::TextEncoder> encoder;
  agree([&] {
    encoder = std::make_unique<SentenceEncoder>(std::move(opened), std::move(shared),
                                                std::move(config), compute, options.device);
  });
  return encoder;
}

TextEncoderFolder inspect_sentence_encoder(const std::string& folder, int max_tokens,
                                           DType compute) {
  auto opened = std::make_shared<const SentenceFolder>(open_sentence_folder(folder, false));
  return as_usage([&] {
    const SentenceModel model(*opened->component, compute, Device::cpu);  // compares shapes
    const DType stored = model.stored();
    TextEncoderFolder facts;
    facts.width = model.dim();
    facts.file_bytes = model.bytes();
    facts.table_bytes =
        static_cast<double>(model.table_elements()) * static_cast<double>(dtype_size(stored));
    const int tokens = opened->rule.padded_to > 0 ? opened->rule.padded_to
                                                  : std::min(max_tokens, opened->rule.most_tokens);
    facts.cost = [=](std::int64_t, Device device) {
      const MetaAccount account(device);
      const SentenceModel headers(*opened->component, compute, Device::meta, stored);
      const std::int64_t length = tokens;
      headers.encode(std::vector<std::int32_t>(static_cast<std::size_t>(tokens)), {&length, 1},
                     opened->rule.pooling);
      PartCost cost;
      cost.parameters = headers.parameters();
      cost.take(account, 0);
      return cost;
    };
    return facts;
  });
}

}  // namespace vfm::models
