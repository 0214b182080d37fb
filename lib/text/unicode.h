// Text as Unicode defines it, by ICU: decoding text files, cleaning, cutting, words.
//
// Nothing here depends on the locale of the process. Segmentation of scripts without spaces (Thai,
// Chinese, Japanese...) uses ICU's dictionaries, so its words may differ between ICU versions.
// Malformed input is never an error: bad bytes become U+FFFD.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::text {

/// The text of a file in UTF-8: a byte order mark (UTF-8, UTF-16, UTF-32) decides and is removed;
/// without one, UTF-16 is recognised by its zero bytes; all else is taken as UTF-8.
std::string to_utf8(std::string_view bytes);
/// `utf8` with malformed bytes replaced by U+FFFD.
std::string valid_utf8(std::string_view utf8);

/// One line fit for a caption: NFC; white space and control characters become single spaces, none
/// at the ends. Marks that steer direction and joining (bidi controls, ZWJ, ZWNJ) stay.
std::string clean_line(std::string_view utf8);

/// The first `count` characters as a reader counts them (grapheme clusters), shortened to the end
/// of a word unless that would lose more than half. Never cuts inside a character.
std::string first_characters(std::string_view utf8, std::size_t count);

/// In lower case, by the Unicode standard, for no particular language.
std::string lower_case(std::string_view utf8);

/// `utf8` without white space at the ends.
std::string trimmed(std::string_view utf8);

/// `utf8` without ASCII punctuation; white space becomes single spaces, none at the ends. SigLIP's
/// texts were prepared so (big_vision's "canonicalize").
std::string without_punctuation(std::string_view utf8);

/// The words of a text in order, at most `limit` of them: NFKC, case folded. Punctuation and spaces
/// do not count; numbers, symbols and emoji do.
std::vector<std::string> words(std::string_view utf8, std::size_t limit);

}  // namespace vfm::text
