// The "normalizer" of a tokenizer.json, which changes a text before it is split into pieces.
//
// Supported: BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled (sentencepiece's
// compiled table, text/charsmap.h), Prepend, Replace, Sequence, Strip, StripAccents. Source:
// huggingface/tokenizers, normalizers/. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace vfm::text {

/// A part of a text before the vocabulary is applied, in well-formed UTF-8.
struct NormalPiece {
  std::string text;
  /// Whether the first character comes from the first character of the whole text. Some tokenizers
  /// put a space before this character.
  bool at_start = false;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalPiece& piece) const = 0;
};

/// Returns the normalizer, or null for the JSON null. Throws Error{usage}, which names the type and
/// `what`, for an unknown or malformed type.
std::unique_ptr<Normalizer> make_normalizer(const Json& json, std::string_view what);

}  // namespace vfm::text
