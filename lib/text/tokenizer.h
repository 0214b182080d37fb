// Text tokenizers: text in, ids of a vocabulary out, equal to those of the reference libraries
// (sentencepiece, huggingface/tokenizers) for the same file.
//
// Two kinds of files: `spiece.model`, by the sentencepiece library, and `tokenizer.json`, by our
// own code (tokenizer_json.cc): Unigram, BPE and WordPiece, with the normalizers, pre-tokenizers
// and post-processors that published models use. An unknown part is an Error{usage} that names it,
// never a guess. Malformed UTF-8 becomes U+FFFD first, as in Python's decode(errors="replace").
// models/text_encoder.h finds the files. Pairs of sentences are not supported; a tokenizer.json's
// truncation and padding are ignored: the caller decides on lengths. Thread-safety: const members
// from any thread.
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
  /// The ids of a text, with the special tokens that go around it. At most `max_tokens` with those:
  /// the text is cut at its end, the special tokens stay.
  virtual std::vector<std::int32_t> encode(std::string_view utf8, std::size_t max_tokens) const = 0;
  /// The ids of a text that contains its special tokens, as from a chat template: adds none. Throws
  /// Error for a text of more than 16 MiB, and if this is not supported.
  virtual std::vector<std::int32_t> encode_prompt(std::string_view utf8) const;
  /// The bytes of tokens, for decoding. Throws Error{usage} if that is not supported: only a
  /// tokenizer.json with the decoder ByteLevel is.
  virtual std::shared_ptr<const TokenBytes> token_bytes() const;
};

/// Makes a tokenizer from the bytes of a tokenizer.json, at most 64 MiB, named `what` in errors.
/// Throws Error{usage}.
std::unique_ptr<Tokenizer> make_json_tokenizer(std::string_view json, std::string_view what);

/// Makes a tokenizer from the bytes of a sentencepiece model, as in T5: `sentinels` tokens
/// <extra_id_0>, <extra_id_1>, ... have the ids after the vocabulary, the last one first, and </s>
/// ends the ids. Throws Error{usage}.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view model, int sentinels,
                                                        std::string_view what);

}  // namespace vfm::text
