// What a text itself tells of its quality, whatever it is about: whether it repeats itself, what
// writing it has, whether it ends. No language is known: this works for all.
// Segmentation is ICU's (text/unicode.h). Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::text {

/// The sentences of a text in order, without space at their ends, at most `limit`; the last one is
/// then all the rest. By Unicode's rules (UAX 29): a full stop before a small letter ends none.
std::vector<std::string> sentences(std::string_view utf8, std::size_t limit);

struct TextChecks {
  /// The share of runs of three words that are there before; of under four words 0.
  double repetition = 0;
  /// The share of characters, space left out, that belong: neither U+FFFD, private, unassigned or
  /// control characters, nor letters of another script than the text's. 0 of an empty text.
  double clean = 0;
  /// That of the most letters, by Unicode's name ("Latin"); Han, kana, bopomofo and hangul count
  /// as one and have the name of the one with most. "" where there is no letter.
  std::string script;
  /// It ends with a sentence's end ('.', '!', a Chinese full stop ...), quotes or brackets behind
  /// it left out.
  bool ended = false;
};

TextChecks check_text(std::string_view utf8);

}  // namespace vfm::text
