// Decodes ids of a text tokenizer to text, also while a model still makes them.
//
// A token of a byte-level vocabulary is some bytes, which need not be whole characters: an emoji
// may come in four tokens. So text comes out as soon as its characters are whole; invalid bytes
// become U+FFFD. The pieces together equal the ids decoded at once.
// Source: huggingface/tokenizers, decoders/ and pre_tokenizers/byte_level.rs.
// Thread-safety: const members from any thread; a TextStream of one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace vfm::text {

/// The bytes of each id.
struct TokenBytes {
  struct Token {
    std::string bytes;
    bool special = false;  ///< a mark (<|im_end|>), not text
  };
  std::unordered_map<std::int32_t, Token> tokens;
};

class TextStream {
 public:
  /// `keep_special`: treats special tokens as text.
  explicit TextStream(std::shared_ptr<const TokenBytes> tokens, bool keep_special = false)
      : tokens_(std::move(tokens)), keep_special_(keep_special) {}
  /// The text completed by this id. Unknown ids are left out.
  std::string add(std::int32_t id);
  /// The remaining text when no id follows.
  std::string end();

 private:
  std::shared_ptr<const TokenBytes> tokens_;
  bool keep_special_;
  std::string waiting_;  ///< the beginning of a character
};

/// Decodes all ids at once.
std::string decode(std::shared_ptr<const TokenBytes> tokens, std::span<const std::int32_t> ids,
                   bool keep_special = false);

}  // namespace vfm::text
