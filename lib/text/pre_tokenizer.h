// The "pre_tokenizer" of a tokenizer.json: how a normalised text is cut into the pieces that the
// vocabulary is applied to, one by one.
//
// Known: BertPreTokenizer, ByteLevel, Digits, Metaspace, Sequence, Split, Whitespace,
// WhitespaceSplit. Source: huggingface/tokenizers, pre_tokenizers/.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/normalizer.h"

namespace vfm::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Cuts each piece further; none is empty after.
  virtual std::vector<Piece> apply(std::vector<Piece> pieces) const = 0;
};

/// Null for null. Throws Error{usage} for an unknown type or a malformed one, naming it and `what`.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const Json& json, std::string_view what);

}  // namespace vfm::text
