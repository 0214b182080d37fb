// Tokens that are found in the raw text first: special ones (</s>, [CLS], <extra_id_0>) and those
// added to a finished vocabulary.
//
// Source: huggingface/tokenizers, tokenizer/added_vocabulary.rs.
// Thread-safety: const members from any thread.
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
  bool single_word = false;             ///< not inside a word
  bool lstrip = false, rstrip = false;  ///< includes the spaces before, after it
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// A part of a text; the parts cover it, in order.
  struct Part {
    std::size_t begin = 0, end = 0;
    std::int32_t id = -1;  ///< -1: text
  };
  /// Finds the leftmost token first; of several there, the longest.
  std::vector<Part> split(std::string_view utf8) const;

 private:
  std::vector<AddedToken> tokens_;
  PrefixTable table_;  ///< of positions in tokens_
};

}  // namespace vfm::text
