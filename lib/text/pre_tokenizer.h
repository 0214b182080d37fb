// The "pre_tokenizer" of a tokenizer.json: cuts a normalised text into pieces, to each of which the
// vocabulary is applied.
//
// Known: BertPreTokenizer, ByteLevel, Digits, Metaspace, Sequence, Split, Whitespace,
// WhitespaceSplit. Source: huggingface/tokenizers, pre_tokenizers/.
// Thread-safety: const members from any thread.
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
  /// Cuts each piece further; no result is empty.
  virtual std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const = 0;
};

/// Each byte as a visible character: printable Latin-1 as itself, the others from U+0100 on.
const std::array<std::string, 256>& byte_characters();

/// Null for null. Throws Error{usage} for an unknown or malformed type, naming it and `what`.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const Json& json, std::string_view what);

}  // namespace vfm::text
