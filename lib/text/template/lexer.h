// Inside lib/text only: the source of a chat template as tokens, with white space around tags
// already trimmed by trim_blocks, lstrip_blocks and the signs of tags. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::text::jinja {

struct Token {
  enum class Kind {
    data,         ///< text between tags
    print_begin,  ///< {{
    print_end,
    block_begin,  ///< {%
    block_end,
    name,
    string,   ///< unescaped
    integer,  ///< digits
    real,
    sign,  ///< an operator or a bracket
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 1;

  bool is(Kind of, std::string_view with) const { return kind == of && text == with; }
};

/// Ends with a token of the kind `end`. `source` is well-formed UTF-8. Throws Error{usage}, naming
/// `what` and the line.
std::vector<Token> tokens_of(std::string_view source, std::string_view what);

}  // namespace vfm::text::jinja
