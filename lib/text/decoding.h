// Decodes ids of a text tokenizer to text, also while a model still generates the ids.
//
// A token of a byte-level vocabulary is a sequence of bytes that may end inside a character.
// Therefore a TextStream returns only complete characters. Invalid bytes become U+FFFD. All
// returned texts together equal the text of all ids. Source: huggingface/tokenizers, decoders/ and
// pre_tokenizers/byte_level.rs. Thread-safety: const members from any thread; a TextStream one
// thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace vfm::text {

struct TokenBytes {
  struct Token {
    std::string bytes;
    bool special = false;  ///< Whether the token is a mark such as <|im_end|>.
  };
  std::unordered_map<std::int32_t, Token> tokens;
};

class TextStream {
 public:
  /// `keep_special` tells whether special tokens are decoded as text.
  explicit TextStream(std::shared_ptr<const TokenBytes> tokens, bool keep_special = false)
      : tokens_(std::move(tokens)), keep_special_(keep_special) {}
  /// Returns the text that this id completes. Ignores unknown ids.
  std::string add(std::int32_t id);
  /// Returns the remaining text. Call end() after the last id.
  std::string end();

 private:
  std::shared_ptr<const TokenBytes> tokens_;
  bool keep_special_;
  std::string waiting_;
};

std::string decode(std::shared_ptr<const TokenBytes> tokens, std::span<const std::int32_t> ids,
                   bool keep_special = false);

}  // namespace vfm::text
