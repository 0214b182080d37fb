// The "pre_tokenizer" of a tokenizer.json, which splits a normalised text into pieces. The
// vocabulary is then applied to each piece.
//
// Supported: BertPreTokenizer, ByteLevel, Digits, Metaspace, Sequence, Split, Whitespace,
// WhitespaceSplit. Source: huggingface/tokenizers, pre_tokenizers/. Thread-safety: const members
// from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "text/normalizer.h"

namespace vfm::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Splits each piece into smaller pieces. No piece of the result is empty.
  virtual std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const = 0;
};

/// Returns a visible character for each byte. Printable Latin-1 characters are unchanged, and all
/// other bytes become characters from U+0100 on.
const std::array<std::string, 256>& byte_characters();

/// Returns the pre-tokenizer, or null for the JSON null. Throws Error{usage}, which names the type
/// and `what`, for an unknown or malformed type.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const Json& json, std::string_view what);

}  // namespace vfm::text
