// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/prompt_encoder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/npy.h"
#include "text/unicode.h"

namespace vfm::generate {
namespace {

bool are_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

/// What was kept; nothing if it is not there or damaged.
std::optional<text::TokenEmbeddings> read_kept(const std::string& path, int dim) {
  if (!io::file_exists(path)) return std::nullopt;
  try {
    const std::string bytes = io::read_file(path);
    const io::NpyHeader header = io::parse_npy(bytes, path);
    if (header.shape.size() != 2 || header.shape[1] != dim || header.shape[0] > 1 << 20)
      return std::nullopt;
    std::vector<float> values = io::npy_floats(bytes, path);
    if (!are_finite(values)) fail("'{}' has values that are not finite", path);
    return text::TokenEmbeddings{std::move(values), static_cast<int>(header.shape[0]), dim};
  } catch (const Error& error) {
    log_info("{}; the text is encoded again", error.what());
    return std::nullopt;
  }
}

}  // namespace

PromptEncoder::PromptEncoder(const models::ModelFacts& facts, std::string cache,
                             const models::TextEncoderOptions& options, int width)
    : cache_(std::move(cache)),
      width_(width),
      padding_(facts.text_padding),
      encode_empty_(facts.encode_empty) {
  if (!facts.text_encoder || width == 0) {
    if (!options.folder.empty())
      fail_usage("{}: the model was trained without text: leave it out", options.folder_option);
    return;
  }
  foreign_ = facts.text_encoder->foreign();
  if (foreign_) {
    if (!options.folder.empty())
      fail_usage(
          "{}: the model was trained on text embeddings that vfm-embed did not make: leave it out",
          options.folder_option);
    return;
  }
  encoder_ = models::make_text_encoder(*facts.text_encoder, options);
  if (encoder_->name().starts_with("builtin:")) cache_.clear();
  if (!cache_.empty()) cache_ = io::join_path(cache_, "text");
  Json identity = encoder_identity(encoder_->config().to_json());
  if (options.device == Device::cuda) identity["device"] = "cuda";  // which rounds otherwise
  identity_ = dump_json(identity);
}

text::TokenEmbeddings PromptEncoder::encode_now(const std::string& prompt) const {
  text::TokenEmbeddings made = encoder_->encode(prompt);
  if (!are_finite(made.values))
    fail("the text encoder '{}' makes values that are not finite: its weights are damaged",
         encoder_->config().path.empty() ? encoder_->name() : encoder_->config().path);
  return made;
}

text::TokenEmbeddings PromptEncoder::encode_or_read(const std::string& prompt) const {
  if (cache_.empty()) return encode_now(prompt);
  const std::string path = io::join_path(cache_, hash_hex(identity_ + "\n" + prompt) + ".npy");
  if (auto kept = read_kept(path, dim())) return *std::move(kept);
  text::TokenEmbeddings made = encode_now(prompt);
  try {
    io::make_directories(cache_);
    io::write_file(path, io::make_npy_float({made.tokens, made.dim}, made.values));
  } catch (const Error& error) {
    log_info("a text embedding is not kept: {}", error.what());
  }
  return made;
}

void PromptEncoder::warn_of_cut(const std::string& prompt) const {
  const int left_out = encoder_->tokens_left_out(prompt);
  if (left_out == 0) return;
  const std::lock_guard lock(mutex_);
  if (!cut_.insert(prompt).second) return;
  log_warning(
      "the prompt '{}...' is longer than the text encoder takes: its last {} tokens are left out",
      text::first_characters(prompt, 40), left_out);
}

text::TokenEmbeddings PromptEncoder::encode(const std::string& prompt) const {
  text::TokenEmbeddings result;
  result.dim = dim();
  if (encoder_ && (!prompt.empty() || encode_empty_)) {
    warn_of_cut(prompt);
    result = encode_or_read(prompt);
  }
  return fill_up(std::move(result));
}

text::TokenEmbeddings PromptEncoder::fill_up(text::TokenEmbeddings given) const {
  const int tokens = std::max({1, padding_, given.tokens});
  given.values.resize(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(given.dim));
  given.tokens = tokens;
  return given;
}

}  // namespace vfm::generate
