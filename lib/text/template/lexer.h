// Splits the source of a chat template into tokens. White space around tags is removed by the rules
// of trim_blocks and lstrip_blocks, and by signs such as "{%-". Only for lib/text.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::text::jinja {

struct Token {
  enum class Kind {
    data,         ///< Text between tags.
    print_begin,  ///< {{
    print_end,
    block_begin,  ///< {%
    block_end,
    name,
    string,  ///< Unescaped string.
    integer,
    real,
    sign,  ///< Operator or bracket.
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 1;

  bool is(Kind of, std::string_view with) const { return kind == of && text == with; }
};

/// Returns the tokens. The last token is of the kind `end`. `source` must be well-formed UTF-8.
/// Throws Error{usage}, which names `what` and the line.
std::vector<Token> tokens_of(std::string_view source, std::string_view what);

}  // namespace vfm::text::jinja
