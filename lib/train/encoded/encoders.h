// The frozen models that encode clips during training: a video tokenizer, and optionally a text
// encoder for captions that have no embedding.
//
// Configurations and headers are read at once; weights are read by load(), or when something is
// first encoded. On the CPU an encoder computes with one thread, so that its bits depend neither on
// the number of threads nor on what else is encoded. On a GPU encoding takes turns with the
// training (take_turn()). Thread-safety: const members from any thread; use() and load() before
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "data/clip_pixels.h"
#include "data/given_texts.h"
#include "dist/world.h"
#include "models/process/latent_scale.h"
#include "models/text_encoder.h"
#include "models/tokenizer_family.h"
#include "train/run.h"

namespace vfm::train {

/// The part of an encoder's configuration on which its output depends, without device and place.
Json identity_of(Json config);

class Encoders {
 public:
  /// names.tokenizer is builtin:wavelet, builtin:fsq, a folder, or a latents.json with tokenizer
  /// and scale. names.text is builtin:hash or a folder. Throws Error{usage} if one cannot be used.
  Encoders(const EncoderNames& names, Device device);
  ~Encoders();

  int channels() const { return facts_.channels; }
  int time_factor() const { return facts_.time_factor; }
  int space_factor() const { return facts_.space_factor; }
  int vocabulary() const { return facts_.vocabulary; }  ///< 0: continuous
  const models::TokenizerFacts& tokenizer_facts() const { return facts_; }
  /// Whether captions are encoded, and into how many tokens at most.
  bool has_text() const { return text_config_.has_value(); }
  int most_tokens() const;
  const models::TokenizerConfig& tokenizer_config() const { return config_; }
  const std::optional<text::EncoderConfig>& text_config() const { return text_config_; }
  Device device() const { return device_; }

  /// What one rank finds of these encoders by reading their files, for data::GivenTexts: the others
  /// need not read that. Throws Error.
  static void tell(data::FileTexts& texts, const EncoderNames& names, Device device);
  /// Reads the weights with the other ranks, those of the text encoder if there are `texts` to
  /// encode. Throws Error{usage}. A collective.
  void load(dist::World& world, bool texts) const;
  /// The tokenizer's configuration with its hash, as it is after loading.
  Json tokenizer_json() const;
  /// identity_of() the same. It reads files, but loads no weights on the device.
  Json tokenizer_identity() const;

  /// Latents in the tokenizer's units, (C, T, H, W), or codes. Throws Error if values are not
  /// finite, or beyond the range of halves, in which latents are stored.
  std::vector<float> latent(const data::ClipPixels& clip) const;
  std::vector<std::int32_t> codes(const data::ClipPixels& clip) const;
  /// The embedding of a caption, (tokens, width), rounded to halves as on disk.
  std::vector<float> text(const std::string& caption) const;

  /// The scale from the user's file or the tokenizer's folder, not whitened. Empty without such a
  /// scale.
  std::optional<models::LatentScale> known_scale() const;
  /// True if the user gave a scale, by names.scale or a latents.json.
  bool scale_given() const { return given_.has_value(); }
  /// Latents are normalized by this scale from now on. Before, they are in the tokenizer's units.
  void use(models::LatentScale scale) { scale_ = std::move(scale); }
  const std::optional<models::LatentScale>& scale() const { return scale_; }

 private:
  const models::VideoTokenizer& tokenizer() const;

  models::TokenizerConfig config_;
  models::TokenizerFacts facts_;
  std::optional<text::EncoderConfig> text_config_;
  std::optional<models::LatentScale> given_, scale_;
  Device device_;
  mutable std::mutex mutex_;  // guards the others while they are made
  mutable std::unique_ptr<models::VideoTokenizer> tokenizer_;
  mutable std::unique_ptr<text::TextEncoder> text_;
  mutable std::optional<models::TokenizerConfig> settled_;  // with the folder's hash
};

}  // namespace vfm::train
