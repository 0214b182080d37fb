// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/encoders.h"

#include <utility>

#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "dist/together.h"
#include "io/file.h"
#include "io/npy.h"
#include "tensor/device.h"
#include "train/encoded/shared_weights.h"

namespace vfm::train {
namespace {

constexpr int kMostTokens = 512;  // of a caption, as vfm-embed has them

Json read_object(const std::string& path) {
  return as_usage([&] {
    Json json = parse_json(io::read_file(path, io::kMostModelJson), "'" + path + "'");
    if (!json.is_object()) fail("'{}' is not a JSON object", path);
    return json;
  });
}

models::LatentScale scale_in(const Json& json, const std::string& path) {
  return as_usage([&] { return models::LatentScale::from_json(json, "'" + path + "'"); });
}

/// The name under which the GivenTexts have a model's configuration with the hash of its folder.
std::string given_as(const std::string& named, Device device) {
  return fmt::format("encoder '{}' on {}", named, device_name(device));
}

std::optional<Json> given(const std::string& named, Device device) {
  const auto* const text = data::GivenTexts::find(given_as(named, device));
  if (text == nullptr || !*text) return std::nullopt;
  return parse_json(**text, "an encoder's configuration");
}

std::optional<text::EncoderConfig> text_config_of(const std::string& named, Device device) {
  if (named.empty()) return std::nullopt;
  if (const auto known = given(named, device)) return models::text_config_from_json(*known);
  if (named == "builtin:hash")
    return models::make_text_encoder({.name = named, .dim = 64, .max_tokens = kMostTokens})
        ->config();
  return models::text_encoder_config(named, kMostTokens,
                                     device == Device::cuda ? DType::bf16 : DType::f32);
}

}  // namespace

Json identity_of(Json config) {
  if (!config.is_object()) return config;
  if (config.contains("hash")) config.erase("path");
  config.erase("compute");
  return config;
}

Encoders::Encoders(const EncoderNames& names, Device device)
    : text_config_(text_config_of(names.text, device)), device_(device) {
  if (names.tokenizer.ends_with(".json")) {
    const Json info = read_object(names.tokenizer);
    if (!info.contains("tokenizer"))
      fail_usage("'{}' names no tokenizer: a latents.json of vfm-pack does", names.tokenizer);
    config_ = models::TokenizerConfig::from_json(info["tokenizer"]);
    if (info.contains("mean")) given_ = scale_in(info, names.tokenizer);
  } else {
    config_ = models::tokenizer_config(names.tokenizer);
  }
  if (!names.scale.empty()) given_ = scale_in(read_object(names.scale), names.scale);
  models::TokenizerConfig inspected = config_;
  if (const auto known = given(names.tokenizer, device)) {
    settled_ = models::TokenizerConfig::from_json(*known);
    inspected.hash.clear();  // it was compared
  }
  facts_ = models::inspect_tokenizer(inspected, device);
  if (given_ && vocabulary() > 0)
    fail_usage("the tokenizer is discrete, and codes have no mean and deviation: leave them out");
  if (given_ && given_->channels() != static_cast<std::size_t>(channels()))
    fail_usage("the mean and deviation are of {} channels, the tokenizer's latents have {}",
               given_->channels(), channels());
}

Encoders::~Encoders() = default;

int Encoders::most_tokens() const {
  if (text_config_ && text_config_->one_token()) return 1;
  return static_cast<int>(text_config_ ? text_config_->max_tokens.value_or(kMostTokens) : 0);
}

const models::VideoTokenizer& Encoders::tokenizer() const {
  const std::lock_guard lock(mutex_);
  if (!tokenizer_) tokenizer_ = models::make_tokenizer(config_, device_);
  return *tokenizer_;
}

Json Encoders::tokenizer_json() const {
  return tokenizer().config().to_json();
}
Json Encoders::tokenizer_identity() const {
  const std::lock_guard lock(mutex_);
  if (tokenizer_) return identity_of(tokenizer_->config().to_json());
  if (!settled_) settled_ = as_usage([&] { return facts_.family->settle(config_); });
  return identity_of(settled_->to_json());
}

void Encoders::tell(data::FileTexts& texts, const EncoderNames& names, Device device) {
  const Encoders own(names, device);
  own.tokenizer_identity();
  texts[given_as(names.tokenizer, device)] = dump_json(own.settled_->to_json());
  if (own.text_config_)
    texts[given_as(names.text, device)] = dump_json(own.text_config_->to_json());
}

void Encoders::load(dist::World& world, bool texts) const {
  const std::lock_guard lock(mutex_);
  models::TextEncoderOptions options{.device = device_};
  if (world.size() > 1) {
    options.ranks.group = &world.all();
    options.ranks.agree = [&](const auto& act) { on_all_ranks(world, [&] { as_usage(act); }); };
    options.share = [&](const io::TensorSet& weights) { return share_weights(world, weights); };
  }
  if (!tokenizer_) tokenizer_ = models::make_tokenizer(config_, device_, 0, options.ranks);
  if (texts && text_config_ && !text_) text_ = models::make_text_encoder(*text_config_, options);
}

std::vector<float> Encoders::latent(const data::ClipPixels& clip) const {
  const OneThread one_thread;
  std::vector<float> values = tokenizer().encode(clip.pixels, clip.frames, clip.height, clip.width);
  io::check_halves(values, "its latent");
  return values;
}

std::vector<std::int32_t> Encoders::codes(const data::ClipPixels& clip) const {
  const OneThread one_thread;
  return tokenizer().encode_codes(clip.pixels, clip.frames, clip.height, clip.width);
}

std::vector<float> Encoders::text(const std::string& caption) const {
  {
    const std::lock_guard lock(mutex_);
    if (!text_) text_ = models::make_text_encoder(*text_config_, {.device = device_});
  }
  const OneThread one_thread;
  std::vector<float> values = text_->encode(caption).values;
  io::check_halves(values, "the embedding of its caption");
  std::vector<std::uint16_t> halves(values.size());
  floats_to_halves(values, halves);
  halves_to_floats(halves, values);
  return values;
}

std::optional<models::LatentScale> Encoders::known_scale() const {
  return given_ ? given_ : tokenizer().statistics();
}

}  // namespace vfm::train
