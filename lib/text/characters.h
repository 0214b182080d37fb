// Code points of UTF-8 text, and the classes of characters that tokenizers distinguish.
//
// The reference libraries have tables of different Unicode versions. A class of an old version does
// not contain newer characters. Characters that ICU does not know are in no class. Source:
// huggingface/tokenizers and its dependencies, compared for all code points.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vfm::text {

/// Returns the code point at `at`, and moves `at` to the next code point. The text must be
/// well-formed, and `at` must be the start of a code point.
char32_t next_code_point(std::string_view utf8, std::size_t& at);
void append_code_point(std::string& utf8, char32_t c);
std::size_t count_code_points(std::string_view utf8);
/// Returns the start of the code point before `end`. `end` must be above 0.
std::size_t previous_boundary(std::string_view utf8, std::size_t end);

bool is_space(char32_t c);  ///< Property White_Space.
/// Class \w of Unicode TR 18: letters, marks, digits, connectors, joiners.
bool is_word(char32_t c);
bool is_numeric(char32_t c);  ///< Categories Nd, Nl, No.

// These four functions return whether a character is in a class of BERT, by Unicode 8.
bool is_bert_control(char32_t c);      ///< Categories Cc, Cf, Co, except tab and line ends.
bool is_bert_punctuation(char32_t c);  ///< Categories P*, and ASCII's symbols.
bool is_bert_accent(char32_t c);       ///< Category Mn.
bool is_cjk_ideograph(char32_t c);     ///< Ideographs that BERT's tokenizer separates by spaces.

/// Returns whether a character is in category Mn, Mc or Me of Unicode 9. The normalizer
/// StripAccents removes these characters.
bool is_combining_mark(char32_t c);

/// Appends the lower case of one character. Ignores the characters before and after it.
void append_lower_case(std::string& utf8, char32_t c);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// Returns the normal form of Unicode 9. Newer characters are unchanged.
std::string normal_form(std::string_view utf8, NormalForm form);

}  // namespace vfm::text
