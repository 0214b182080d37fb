// The "normalizer" of a tokenizer.json: changes a text before it is cut into pieces.
//
// Known: BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled (sentencepiece's
// compiled table, text/charsmap.h), Prepend, Replace, Sequence, Strip, StripAccents.
// Source: huggingface/tokenizers, normalizers/.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace vfm::text {

/// A part of a text on its way to the vocabulary. Well-formed UTF-8.
struct NormalPiece {
  std::string text;
  /// True if its first character comes from the whole text's first: some tokenizers put a space
  /// there.
  bool at_start = false;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalPiece& piece) const = 0;
};

/// Null for null. Throws Error{usage} for an unknown or malformed type, naming it and `what`.
std::unique_ptr<Normalizer> make_normalizer(const Json& json, std::string_view what);

}  // namespace vfm::text
