// Decodes text files, cleans and cuts texts, and finds words, by ICU.
//
// Results do not depend on the locale of the process. For scripts without spaces (Thai, Chinese,
// Japanese...), ICU uses dictionaries, so words may differ between ICU versions. Malformed bytes
// become U+FFFD and are never an error. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::text {

/// Returns the text of a file in UTF-8. If the file begins with a byte order mark (UTF-8, UTF-16,
/// UTF-32), the mark determines the encoding and is removed. Otherwise a file with the zero bytes
/// of UTF-16 is read as UTF-16, and any other file as UTF-8.
std::string to_utf8(std::string_view bytes);
/// Returns `utf8` with U+FFFD in place of malformed bytes.
std::string valid_utf8(std::string_view utf8);

/// Returns a single line for a caption, in NFC. White space and control characters become single
/// spaces, and are removed at the ends. Marks for direction and joining (bidi controls, ZWJ, ZWNJ)
/// are kept.
std::string clean_line(std::string_view utf8);

/// Returns the first `count` characters (grapheme clusters). If this cuts a word, the word is
/// removed, unless more than half of the result would be lost.
std::string first_characters(std::string_view utf8, std::size_t count);

/// Returns the lower case by the Unicode standard, for no specific language.
std::string lower_case(std::string_view utf8);

/// Returns `utf8` without white space at the ends.
std::string trimmed(std::string_view utf8);

/// Returns `utf8` without ASCII punctuation. White space becomes single spaces, and is removed at
/// the ends. Texts for SigLIP are prepared in this way ("canonicalize" in big_vision).
std::string without_punctuation(std::string_view utf8);

/// Returns at most `limit` words of a text, in order, in NFKC and case folded. Numbers, symbols and
/// emoji are words. Punctuation and spaces are not words.
std::vector<std::string> words(std::string_view utf8, std::size_t limit);

}  // namespace vfm::text
