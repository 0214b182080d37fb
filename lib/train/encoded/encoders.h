// The frozen models that make latents, or codes, of clips while others train: a video tokenizer,
// and perhaps a text encoder for captions that have no embedding.
//
// Their configurations and headers are read at once, their weights when something is first encoded,
// or by load(). Each computes with one thread of the CPU, so that its bits do not depend on how
// many there are, nor on what else is encoded; on a GPU they take turns with the training
// (take_turn()). Thread-safety: const members from any thread; use() and load() before them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "data/clip_pixels.h"
#include "models/dit/edm.h"
#include "models/text_encoder.h"
#include "models/tokenizer.h"
#include "train/run.h"

namespace vfm::train {

/// A part's configuration without what differs between devices and places and makes no other data.
Json identity_of(Json config);

class Encoders {
 public:
  /// names.tokenizer is builtin:wavelet, builtin:fsq, a folder, or a latents.json, whose tokenizer
  /// and scale are then taken; names.text builtin:hash or a folder. Throws Error{usage} for what
  /// cannot be used.
  Encoders(const EncoderNames& names, Device device);
  ~Encoders();

  int channels() const { return channels_; }
  int time_factor() const { return time_factor_; }
  int space_factor() const { return space_factor_; }
  int vocabulary() const { return vocabulary_; }  ///< 0: continuous
  /// Whether captions are encoded; of which so many tokens at most.
  bool has_text() const { return text_config_.has_value(); }
  int most_tokens() const;
  const models::TokenizerConfig& tokenizer_config() const { return config_; }
  const std::optional<text::EncoderConfig>& text_config() const { return text_config_; }
  Device device() const { return device_; }

  /// Reads the weights. Throws Error{usage}.
  void load() const;
  /// As it is after loading: with the hash.
  Json tokenizer_json() const;
  /// identity_of() that. Files are read, but nothing is made of them that it needs the device for.
  Json tokenizer_identity() const;

  /// Latents in the tokenizer's units, (C, T, H, W); or codes. Throws Error for values that are not
  /// finite, or beyond the range of halves, which latents on disk have.
  std::vector<float> latent(const data::ClipPixels& clip) const;
  std::vector<std::int32_t> codes(const data::ClipPixels& clip) const;
  /// (tokens, width), rounded to halves as on disk.
  std::vector<float> text(const std::string& caption) const;

  /// The scale that the user gave, by the file or the tokenizer's folder; not whitened.
  std::optional<models::LatentScale> known_scale() const;
  /// Whether the user gave one as such.
  bool scale_given() const { return given_.has_value(); }
  /// From now on latents are seen in this scale; none: as the tokenizer makes them.
  void use(models::LatentScale scale) { scale_ = std::move(scale); }
  const std::optional<models::LatentScale>& scale() const { return scale_; }

 private:
  const models::VideoTokenizer& tokenizer() const;

  models::TokenizerConfig config_;
  std::optional<text::EncoderConfig> text_config_;
  std::optional<models::LatentScale> given_, scale_;
  Device device_;
  int channels_ = 0, time_factor_ = 1, space_factor_ = 1, vocabulary_ = 0;
  mutable std::mutex mutex_;  // guards these while they are made
  mutable std::unique_ptr<models::VideoTokenizer> tokenizer_;
  mutable std::unique_ptr<text::TextEncoder> text_;
  mutable std::string hash_;  // of the tokenizer's folder, when it is known
};

}  // namespace vfm::train
