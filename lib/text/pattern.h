// The pattern by which a tokenizer.json splits or replaces: a string, or a regular expression.
//
// The reference matches with Oniguruma, we with ICU. If their meanings differ ('.', '^', '$', \w,
// \b, ...), the expression is refused. Published tokenizers use the rest: \p{...}, \s, \d, classes,
// groups, look-around, counts.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::text {

/// A part of a text; the parts that find() returns cover it, in order.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool match = false;
};

class Pattern {
 public:
  /// A regular expression. Throws Error{usage} naming it and `what`.
  Pattern(std::string_view expression, std::string_view what);
  /// {"String": "..."} or {"Regex": "..."}, the "pattern" of `owner`. Throws Error{usage}.
  static Pattern from_json(const Json& owner, std::string_view what);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  /// Throws Error if the expression takes too long on this text.
  std::vector<TextSpan> find(std::string_view utf8) const;

 private:
  Pattern();
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace vfm::text
