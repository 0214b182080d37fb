// Checks of a text's quality, whatever its subject: whether it repeats itself, its script, whether
// it ends. It works for all languages.
// Segmentation is ICU's (text/unicode.h). Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::text {

/// The sentences of a text in order, without space at their ends, at most `limit`; the last one
/// then has all the rest. Unicode's rules (UAX 29) apply: a full stop before a small letter does
/// not end a sentence.
std::vector<std::string> sentences(std::string_view utf8, std::size_t limit);

struct TextChecks {
  /// The share of runs of three words that occurred before; 0 below four words.
  double repetition = 0;
  /// The share of characters, without spaces, that belong to the text: not U+FFFD, private,
  /// unassigned or control characters, nor letters of another script. 0 for an empty text.
  double clean = 0;
  /// The script of most letters, by Unicode's name ("Latin"); Han, kana, bopomofo and hangul count
  /// as one, named after the most frequent. "" without letters.
  std::string script;
  /// True if it ends with a sentence's end ('.', '!', a Chinese full stop ...), ignoring quotes or
  /// brackets behind it.
  bool ended = false;
};

TextChecks check_text(std::string_view utf8);

}  // namespace vfm::text
