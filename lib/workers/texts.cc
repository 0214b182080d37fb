// SPDX-License-Identifier: Apache-2.0
#include "workers/texts.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/text_encoder.h"

namespace vfm::workers {
namespace {

constexpr const char* kTextWords = "what a worker says of texts";
/// Approximate tokens of a pack of texts (models/encoder/packed_text_encoder.h).
constexpr std::int64_t kPackTokens = 4096;

using Embeddings = std::vector<text::TokenEmbeddings>;

Parcel embedding_parcel(const Embeddings& all) {
  Parcel parcel{"", Json{{"tokens", Json::array()}}, {}};
  std::int64_t count = 0;
  for (const text::TokenEmbeddings& one : all) {
    parcel.words["tokens"].push_back(one.tokens);
    count += static_cast<std::int64_t>(one.values.size());
  }
  Tensor tensor({count});
  float* to = tensor.data<float>();
  for (const text::TokenEmbeddings& one : all)
    to = std::copy(one.values.begin(), one.values.end(), to);
  parcel.tensors.push_back(std::move(tensor));
  return parcel;
}

Embeddings embeddings_of(const Parcel& parcel, int dim, std::size_t texts) {
  const auto tokens = parcel.words->find("tokens");
  if (parcel.tensors.size() != 1 || tokens == parcel.words->end() || tokens->size() != texts)
    fail("{}: other embeddings than those of {} texts", kTextWords, texts);
  const std::span<const float> values = parcel.tensors[0].floats();
  const auto each = static_cast<std::size_t>(dim);
  Embeddings all;
  std::size_t at = 0;
  for (const Json& entry : *tokens) {
    const std::size_t left = (values.size() - at) / each;
    if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() > left)
      fail("{}: numbers are missing", kTextWords);
    const auto count = entry.get<std::size_t>();
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(at);
    all.push_back(
        {{from, from + static_cast<std::ptrdiff_t>(count * each)}, static_cast<int>(count), dim});
    at += count * each;
  }
  return all;
}

class TextService final : public Service {
 public:
  explicit TextService(std::unique_ptr<text::TextEncoder> encoder) : encoder_(std::move(encoder)) {}

  Parcel answer(const Parcel& request) override {
    std::vector<std::string> texts;
    for (const Tensor& one : request.tensors)
      texts.emplace_back(text_of(one));
    return embedding_parcel(encoder_->encode_all(texts));
  }

 private:
  std::unique_ptr<text::TextEncoder> encoder_;
};

class WorkersTexts final : public text::TextEncoder {
 public:
  WorkersTexts(StageModels& models, const text::EncoderConfig& config,
               std::unique_ptr<text::TextEncoder> here)
      : models_(models), here_(std::move(here)) {
    const auto cost = models::inspect_text_encoder(config, {}).cost(kPackTokens, models.device());
    number_ = models.add(kTexts, {kTexts, config.to_json(), {bytes_tensor(config.path)}},
                         static_cast<std::int64_t>(cost.activation_bytes));
  }

  int dim() const override { return here_->dim(); }
  text::EncoderConfig config() const override { return here_->config(); }
  int tokens_left_out(std::string_view utf8) const override { return here_->tokens_left_out(utf8); }
  text::TokenEmbeddings encode(std::string_view utf8) const override {
    return std::move(encode_all({std::string(utf8)}).front());
  }
  /// Sends all texts in one request, since the last bits may depend on which texts form a pack.
  Embeddings encode_all(const std::vector<std::string>& texts) const override {
    if (texts.empty()) return {};
    Parcel request{"encode", Json::object(), {}};
    for (const std::string& one : texts)
      request.tensors.push_back(bytes_tensor(one));
    return embeddings_of(models_.ask(number_, std::move(request)), dim(), texts.size());
  }

 private:
  StageModels& models_;
  std::unique_ptr<text::TextEncoder> here_;  // has the tokenizer and the configuration
  std::size_t number_ = 0;
};

}  // namespace

std::unique_ptr<text::TextEncoder> texts_in_workers(StageModels& models,
                                                    const text::EncoderConfig& config) {
  auto here = models::make_text_encoder(config);
  if (config.path.empty()) return here;
  return std::make_unique<WorkersTexts>(models, config, std::move(here));
}

std::unique_ptr<Service> open_texts(const Parcel& open, Device device) {
  text::EncoderConfig config = models::text_config_from_json(open.words);
  config.path = text_of(open.tensors.at(0));
  models::TextEncoderOptions options;
  options.device = device;
  return std::make_unique<TextService>(models::make_text_encoder(config, options));
}

}  // namespace vfm::workers
