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
#include "models/folder/load_together.h"

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

std::optional<text::EncoderConfig> text_config_of(const std::string& named, Device device) {
  if (named.empty()) return std::nullopt;
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
  facts_ = models::inspect_tokenizer(config_, device);
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

void Encoders::load(dist::World& world) const {
  {
    const std::lock_guard lock(mutex_);
    models::LoadingRanks ranks;
    if (world.size() > 1) {
      ranks.group = &world.all();
      ranks.agree = [&](const auto& act) { on_all_ranks(world, act); };
    }
    if (!tokenizer_) tokenizer_ = models::make_tokenizer(config_, device_, 0, ranks);
  }
  load_text();
}

void Encoders::load_text() const {
  const std::lock_guard lock(mutex_);
  if (text_config_ && !text_) text_ = models::make_text_encoder(*text_config_, {.device = device_});
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
  load_text();
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
