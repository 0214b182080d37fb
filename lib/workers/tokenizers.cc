// SPDX-License-Identifier: Apache-2.0
#include "workers/tokenizers.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "models/tokenizer_family.h"

namespace vfm::workers {
namespace {

constexpr const char* kWhat = "what a worker says of a tokenizer";
constexpr const char* kAsked = "what a tokenizer is asked";
/// Memory of a builtin tokenizer, which computes a few frames at a time.
constexpr std::int64_t kBuiltinBytes = std::int64_t{512} << 20;

template <class T>
constexpr DType kTypeOf = std::is_same_v<T, float> ? DType::f32 : DType::i32;

template <class T>
Tensor tensor_of(std::span<const T> values) {
  Tensor tensor({static_cast<std::int64_t>(values.size())}, kTypeOf<T>);
  std::memcpy(tensor.raw(), values.data(), tensor.bytes());
  return tensor;
}

template <class T>
Parcel numbers(const std::vector<T>& values) {
  return {"", Json::object(), {tensor_of<T>(values)}};
}

template <class T>
std::span<const T> values_of(const Tensor& tensor) {
  if (tensor.dtype() != kTypeOf<T> || tensor.device() != Device::cpu)
    fail("numbers of a tokenizer are {}", dtype_name(tensor.dtype()));
  return {tensor.data<T>(), static_cast<std::size_t>(tensor.elements())};
}

int whole(const Json& words, const char* name) {
  const std::int64_t value = need_integer(words, name, kAsked);
  if (value < 1 || value > 1 << 24) fail("{}: '{}' is {}", kAsked, name, value);
  return static_cast<int>(value);
}

Json size_words(int frames, int height, int width) {
  return {{"frames", frames}, {"height", height}, {"width", width}};
}

Parcel facts_of(const models::VideoTokenizer& tokenizer) {
  Json words = {{"channels", tokenizer.channels()},
                {"time_factor", tokenizer.time_factor()},
                {"space_factor", tokenizer.space_factor()},
                {"vocabulary", tokenizer.vocabulary()},
                {"config", tokenizer.config().to_json()}};
  if (const auto scale = tokenizer.statistics()) words["statistics"] = scale->to_json();
  return {"", std::move(words), {}};
}

class WorkersTokenizer final : public models::VideoTokenizer {
 public:
  WorkersTokenizer(StageModels& models, std::size_t number) : models_(models), number_(number) {
    models_.open();
    const Json facts = models_.ask(number_, {"facts", Json::object(), {}}).words;
    channels_ = whole(facts, "channels");
    time_factor_ = whole(facts, "time_factor");
    space_factor_ = whole(facts, "space_factor");
    vocabulary_ = static_cast<int>(
        std::clamp<std::int64_t>(need_integer(facts, "vocabulary", kWhat), 0, 1 << 30));
    const auto config = facts.find("config"), scale = facts.find("statistics");
    if (config == facts.end()) fail("{}: no 'config'", kWhat);
    config_ = models::TokenizerConfig::from_json(*config);
    if (scale != facts.end()) statistics_ = models::LatentScale::from_json(*scale, kWhat);
  }

  int channels() const override { return channels_; }
  int time_factor() const override { return time_factor_; }
  int space_factor() const override { return space_factor_; }
  int vocabulary() const override { return vocabulary_; }
  std::optional<models::LatentScale> statistics() const override { return statistics_; }
  models::TokenizerConfig config() const override { return config_; }

  std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                            int width) const override {
    return floats("encode", size_words(frames, height, width), tensor_of(pixels),
                  latent_size(frames, height, width));
  }
  std::vector<float> encode_bytes(const Tensor& rgb) const override {
    return floats("encode_bytes", Json::object(), rgb, latent_size(rgb));
  }
  std::vector<float> decode(std::span<const float> latents, int frames, int height,
                            int width) const override {
    const auto t = static_cast<std::size_t>(1 + (frames - 1) * time_factor_);
    const auto rows = static_cast<std::size_t>(height) * static_cast<std::size_t>(space_factor_);
    const auto columns = static_cast<std::size_t>(width) * static_cast<std::size_t>(space_factor_);
    return floats("decode", size_words(frames, height, width), tensor_of(latents),
                  3 * t * rows * columns);
  }
  std::vector<std::int32_t> encode_codes(std::span<const float> pixels, int frames, int height,
                                         int width) const override {
    return codes("encode_codes", size_words(frames, height, width), tensor_of(pixels),
                 latent_size(frames, height, width) / static_cast<std::size_t>(channels_));
  }
  std::vector<std::int32_t> codes_of_bytes(const Tensor& rgb) const override {
    return codes("codes_of_bytes", Json::object(), rgb,
                 latent_size(rgb) / static_cast<std::size_t>(channels_));
  }
  std::vector<float> latent_of_codes(std::span<const std::int32_t> all) const override {
    return floats("latent_of_codes", Json::object(), tensor_of(all),
                  all.size() * static_cast<std::size_t>(channels_));
  }
  void check_memory(bool encodes, int frames, int height, int width, int ranks) const override {
    Json words = size_words(frames, height, width);
    words["encodes"] = encodes;
    words["ranks"] = ranks;
    models_.ask(number_, {"check_memory", std::move(words), {}});
  }

 private:
  std::size_t latent_size(int frames, int height, int width) const {
    return static_cast<std::size_t>(channels_) *
           static_cast<std::size_t>(1 + (frames - 1) / time_factor_) *
           static_cast<std::size_t>(height / space_factor_) *
           static_cast<std::size_t>(width / space_factor_);
  }
  std::size_t latent_size(const Tensor& rgb) const {
    return latent_size(static_cast<int>(rgb.size(0)), static_cast<int>(rgb.size(1)),
                       static_cast<int>(rgb.size(2)));
  }
  Tensor ask(const char* what, Json words, Tensor given, std::size_t expected) const {
    Parcel answer = models_.ask(number_, {what, std::move(words), {std::move(given)}});
    if (answer.tensors.size() != 1 || !std::cmp_equal(answer.tensors[0].elements(), expected))
      fail("{}: not as many numbers as there are to be", kWhat);
    return std::move(answer.tensors[0]);
  }
  std::vector<float> floats(const char* what, Json words, Tensor given,
                            std::size_t expected) const {
    const Tensor made = ask(what, std::move(words), std::move(given), expected);
    const std::span<const float> values = values_of<float>(made);
    return {values.begin(), values.end()};
  }
  std::vector<std::int32_t> codes(const char* what, Json words, Tensor given,
                                  std::size_t expected) const {
    const Tensor made = ask(what, std::move(words), std::move(given), expected);
    const auto values = values_of<std::int32_t>(made);
    if (std::ranges::any_of(values, [this](int code) { return code < 0 || code >= vocabulary_; }))
      fail("{}: a code that there is not", kWhat);
    return {values.begin(), values.end()};
  }

  StageModels& models_;
  std::size_t number_;
  int channels_ = 0, time_factor_ = 0, space_factor_ = 0, vocabulary_ = 0;
  models::TokenizerConfig config_;
  std::optional<models::LatentScale> statistics_;
};

}  // namespace

Parcel tokenizer_parcel(const TokenizerPlan& plan) {
  models::inspect_tokenizer(plan.config);
  return {"", Json{{"tokenizer", plan.config.to_json()}, {"memory", plan.memory}}, {}};
}

std::int64_t tokenizer_bytes(const TokenizerPlan& plan, Device device) {
  const models::TokenizerFacts facts = models::inspect_tokenizer(plan.config, device);
  if (!facts.family->network) return kBuiltinBytes;
  const models::PartCost cost =
      facts.cost({true, plan.frames, plan.height, plan.width, plan.memory}).cost;
  return static_cast<std::int64_t>(cost.weight_bytes +
                                   std::max(cost.held_bytes, cost.activation_bytes));
}

std::unique_ptr<models::VideoTokenizer> tokenizer_in_workers(StageModels& models,
                                                             std::size_t number) {
  return std::make_unique<WorkersTokenizer>(models, number);
}

TokenizerService::TokenizerService(const Parcel& open, Device device) {
  const auto config = open.words->find("tokenizer");
  if (config == open.words->end()) fail("{}: no tokenizer is named", kAsked);
  const std::int64_t memory = need_integer(open.words, "memory", kAsked);
  tokenizer_ = models::make_tokenizer(models::TokenizerConfig::from_json(*config), device,
                                      static_cast<std::uint64_t>(memory));
}

Parcel TokenizerService::answer(const Parcel& request) {
  const OneThread one_thread;
  const std::string& what = request.name;
  const Json& words = request.words;
  const models::VideoTokenizer& t = *tokenizer_;
  if (what == "facts") return facts_of(t);
  if (what == "encode_bytes") return numbers(t.encode_bytes(request.tensors.at(0)));
  if (what == "codes_of_bytes") return numbers(t.codes_of_bytes(request.tensors.at(0)));
  if (what == "latent_of_codes")
    return numbers(t.latent_of_codes(values_of<std::int32_t>(request.tensors.at(0))));
  const int frames = whole(words, "frames"), height = whole(words, "height");
  const int width = whole(words, "width");
  if (what == "check_memory") {
    t.check_memory(get_bool(words, "encodes").value_or(true), frames, height, width,
                   whole(words, "ranks"));
    return {};
  }
  const std::span<const float> values = values_of<float>(request.tensors.at(0));
  if (what == "encode") return numbers(t.encode(values, frames, height, width));
  if (what == "decode") return numbers(t.decode(values, frames, height, width));
  if (what != "encode_codes") fail("{}: '{}'", kAsked, what);
  return numbers(t.encode_codes(values, frames, height, width));
}

}  // namespace vfm::workers
