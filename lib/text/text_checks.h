// Checks the quality of a text in any language: repetition, script, and whether the last sentence
// ends. ICU splits the text (text/unicode.h). Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::text {

/// Returns at most `limit` sentences of a text, in order, without space at their ends. If the text
/// has more sentences, the last sentence of the result is the rest of the text. By Unicode's rules
/// (UAX 29), a full stop before a small letter does not end a sentence.
std::vector<std::string> sentences(std::string_view utf8, std::size_t limit);

struct TextChecks {
  /// Of all runs of three words, the share that occurred earlier in the text. 0 with fewer than
  /// four words.
  double repetition = 0;
  /// Share of valid characters among all characters except spaces. U+FFFD, private, unassigned and
  /// control characters, and letters of a script other than `script` are invalid. 0 for an empty
  /// text.
  double clean = 0;
  /// Unicode's name of the script of most letters, such as "Latin". Han, kana, bopomofo and hangul
  /// are one script, named after its most frequent part. Empty if the text has no letters.
  std::string script;
  /// Whether the text ends with the end of a sentence ('.', '!', a Chinese full stop ...). Quotes
  /// or brackets after the end are ignored.
  bool ended = false;
};

TextChecks check_text(std::string_view utf8);

}  // namespace vfm::text
