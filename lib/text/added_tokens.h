// Finds special tokens (</s>, [CLS], <extra_id_0>) and added tokens in a text before all other
// steps of a tokenizer. Added tokens extend a finished vocabulary.
//
// Source: huggingface/tokenizers, tokenizer/added_vocabulary.rs. Thread-safety: const members from
// any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/prefix_table.h"

namespace vfm::text {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  ///< If true, the token is not found inside a word.
  /// `lstrip` adds the spaces before the token to the token, and `rstrip` the spaces after it.
  bool lstrip = false, rstrip = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// A part of a text, which is a token or other text.
  struct Part {
    std::size_t begin = 0, end = 0;
    std::int32_t id = -1;  ///< Id of the token, or -1 for other text.
  };
  /// Returns the parts of a text, in order, without gaps. Finds the leftmost token first. Of
  /// several tokens that begin at the same place, finds the longest.
  std::vector<Part> split(std::string_view utf8) const;

 private:
  std::vector<AddedToken> tokens_;
  PrefixTable table_;
};

}  // namespace vfm::text
