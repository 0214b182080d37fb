// Encodes prompts for the network, once, caches and pads them.
//
// The embedding of a text by a model's encoder is kept in a folder that may be emptied at any time,
// named by a hash of encoder and text: the next run reads it and needs no encoder. Built-in
// encoders are quick and not cached.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "models/folder/model_facts.h"
#include "models/text_encoder.h"
#include "text/encoder.h"

namespace vfm::generate {

/// Thread-safety: const members from any thread.
class PromptEncoder {
 public:
  /// `cache` is the folder; empty: nothing is kept. `width` is the width of the network's text, 0
  /// for a network without text. Throws Error{usage} for an encoder that cannot be built, or was
  /// chosen for a model without text.
  PromptEncoder(const models::ModelFacts& facts, std::string cache,
                const models::TextEncoderOptions& options, int width);

  /// Whether the model was trained on text. If not, it has no encoder.
  bool reads_text() const { return foreign_ || encoder_ != nullptr; }
  /// Whether it was trained on embeddings that no encoder here makes.
  bool foreign() const { return foreign_; }
  int dim() const { return encoder_ ? encoder_->dim() : width_; }
  /// At least one token: an empty or unread text is one zero vector, unless the model wants it
  /// encoded. Warns once of each text that the
  /// encoder cuts. Throws Error if the encoder makes values that are not finite.
  text::TokenEmbeddings encode(const std::string& prompt) const;
  /// Returns a given embedding, padded as in encode().
  text::TokenEmbeddings fill_up(text::TokenEmbeddings given) const;

 private:
  text::TokenEmbeddings encode_now(const std::string& prompt) const;
  text::TokenEmbeddings encode_or_read(const std::string& prompt) const;
  void warn_of_cut(const std::string& prompt) const;

  std::unique_ptr<text::TextEncoder> encoder_;
  std::string cache_, identity_;
  int width_, padding_;
  bool encode_empty_, foreign_ = false;
  mutable std::mutex mutex_;           // guards cut_
  mutable std::set<std::string> cut_;  ///< texts that were warned of
};

}  // namespace vfm::generate
