// The precompiled character map of sentencepiece, a table in tokenizer.json that replaces
// characters, usually by NMT-NFKC.
//
//   4 bytes   size S of the trie in bytes, little endian
//   S bytes   a double-array trie (Darts-clone): words of 32 bits; keys are UTF-8, values are
//             offsets into the rest
//   the rest  replacements, each ended by a zero byte
//
// A grapheme of less than six bytes is replaced by the replacement of the shortest key that begins
// the grapheme. Other graphemes, and graphemes without a key, are looked up one code point at a
// time. Sources: sentencepiece normalizer.cc and Darts-clone for the layout; huggingface/tokenizers
// normalizers/precompiled.rs for the lookup. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::text {

class Charsmap {
 public:
  /// Throws Error{usage}, which names `what`, for an invalid table. Not all errors are found. A
  /// damaged table may give wrong replacements, but never a crash.
  Charsmap(std::string_view bytes, std::string_view what);

  std::string apply(std::string_view utf8) const;

 private:
  /// Returns the replacement of the shortest key that `text` begins with, or nullopt.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

/// Throws Error{usage}, which names `what`, for invalid base64.
std::string decode_base64(std::string_view text, std::string_view what);

}  // namespace vfm::text
