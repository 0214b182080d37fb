// sentencepiece's precompiled character map: a compiled table in tokenizer.json that replaces
// characters, usually by NMT-NFKC.
//
//   4 bytes   size S of the trie in bytes, little endian
//   S bytes   a double-array trie (Darts-clone): words of 32 bits; keys are UTF-8, values are
//             offsets into what follows
//   the rest  replacements, each ended by a zero byte
//
// Source: sentencepiece normalizer.cc and Darts-clone for the layout; huggingface/tokenizers
// normalizers/precompiled.rs for the parts of a text that are looked up: a grapheme if it is
// shorter than six bytes, by its shortest key, else its code points. Thread-safety: const members
// from any thread.
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
  /// Hostile bytes give an Error{usage} naming `what`, or a map that replaces nonsense.
  Charsmap(std::string_view bytes, std::string_view what);

  std::string apply(std::string_view utf8) const;

 private:
  /// The replacement of the shortest key that `text` begins with.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

/// Throws Error{usage} naming `what`.
std::string decode_base64(std::string_view text, std::string_view what);

}  // namespace vfm::text
