// Text tokenizers: text in, the ids of a vocabulary out, the same that the reference libraries
// (sentencepiece, huggingface/tokenizers) give for the same file.
//
// Two kinds of files: `spiece.model`, by the sentencepiece library, and `tokenizer.json`, by our
// own code (tokenizer_json.cc): Unigram, BPE and WordPiece, with the normalizers, pre-tokenizers
// and post-processors that published models use. A part that is not known here is an Error{usage}
// that names it, never a guess.
// Malformed UTF-8 becomes U+FFFD first, as Python's decode(errors="replace") has it.
// Not here: which files a model folder has (models/text_encoder.h), pairs of sentences,
// and the truncation and padding that a tokenizer.json may ask for: the caller decides on lengths.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/decoding.h"

namespace vfm::text {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// The ids of a text, with the special tokens that go around it. At most `max_tokens`, those
  /// counted: what is too much is cut from the end of the text, the special tokens stay.
  virtual std::vector<std::int32_t> encode(std::string_view utf8, std::size_t max_tokens) const = 0;
  /// The ids of a text that says itself which special tokens it has, as a chat template writes it:
  /// none are added. Throws Error for a text of more than 16 MiB, and where this is not supported.
  virtual std::vector<std::int32_t> encode_prompt(std::string_view utf8) const;
  /// For the way back. Throws Error{usage} where that is not supported: tokenizer.json with the
  /// decoder ByteLevel alone is.
  virtual std::shared_ptr<const TokenBytes> token_bytes() const;
};

/// Of the bytes of a tokenizer.json, at most 64 MiB, named `what` in errors. Throws Error{usage}.
std::unique_ptr<Tokenizer> make_json_tokenizer(std::string_view json, std::string_view what);

/// Of the bytes of a sentencepiece model, as T5 uses it: `sentinels` tokens <extra_id_0>,
/// <extra_id_1>, ... have the ids after the vocabulary, the last one first, and </s> ends the ids.
/// Throws Error{usage}.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view model, int sentinels,
                                                        std::string_view what);

}  // namespace vfm::text
