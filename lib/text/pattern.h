// The pattern by which a tokenizer.json splits or replaces text: a string or a regular expression.
//
// The reference uses Oniguruma, and this class uses ICU. An expression is refused if it has a part
// on which the two libraries may differ ('.', '^', '$', \w, \b, ...). Supported are \p{...}, \s,
// \d, classes, groups, look-around and counts. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::text {

/// A part of a text, which matches or does not match.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool match = false;
};

class Pattern {
 public:
  /// Makes a pattern from a regular expression. Throws Error{usage}, which names the expression and
  /// `what`.
  Pattern(std::string_view expression, std::string_view what);
  /// Makes a pattern from the member "pattern" of `owner`, which is {"String": "..."} or {"Regex":
  /// "..."}. Throws Error{usage}.
  static Pattern from_json(const Json& owner, std::string_view what);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  /// Returns the parts of the text, in order, without gaps. Throws Error if matching takes too
  /// long.
  std::vector<TextSpan> find(std::string_view utf8) const;

 private:
  Pattern();
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace vfm::text
