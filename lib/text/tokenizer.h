// Tokenizers, which convert a text to ids of a vocabulary. The ids equal the ids of the reference
// libraries (sentencepiece, huggingface/tokenizers) with the same file.
//
// A file `spiece.model` is read by the sentencepiece library. A file `tokenizer.json` may have
// Unigram, BPE or WordPiece, with the normalizers, pre-tokenizers and post-processors of published
// models. Unknown parts are refused with Error{usage}, which names the part. Malformed UTF-8
// becomes U+FFFD before all steps, as in Python's decode(errors="replace"). Pairs of sentences are
// not supported. A tokenizer.json's truncation and padding are ignored. Thread-safety: const
// members from any thread.
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
  /// Returns the ids of a text, with the special tokens before and after the text. If there would
  /// be more than `max_tokens` ids, the text is cut at its end, and no special token is removed.
  virtual std::vector<std::int32_t> encode(std::string_view utf8, std::size_t max_tokens) const = 0;
  /// Returns the ids of a text that already contains its special tokens, such as a filled chat
  /// template. Throws Error if the text has more than 16 MiB, or if the tokenizer does not support
  /// prompts.
  virtual std::vector<std::int32_t> encode_prompt(std::string_view utf8) const;
  /// Returns the bytes of all tokens, for decoding. Throws Error{usage} unless the tokenizer was
  /// made from a tokenizer.json with the decoder ByteLevel.
  virtual std::shared_ptr<const TokenBytes> token_bytes() const;
};

/// Makes a tokenizer from the bytes of a tokenizer.json, at most 64 MiB. `what` is the name in
/// errors. Throws Error{usage}.
std::unique_ptr<Tokenizer> make_json_tokenizer(std::string_view json, std::string_view what);

/// Makes a tokenizer from the bytes of a sentencepiece model, as in T5. After the vocabulary come
/// `sentinels` ids, which belong to <extra_id_0>, <extra_id_1>, ... in descending order. Each list
/// of ids ends with </s>. Throws Error{usage}.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view model, int sentinels,
                                                        std::string_view what);

}  // namespace vfm::text
