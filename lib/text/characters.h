// Code points of UTF-8 text, and the classes of characters that tokenizers distinguish.
//
// The reference libraries have tables of different Unicode versions. If a class follows an old
// version, newer characters do not belong to it, whatever ICU says. Characters unknown to this ICU
// belong to no class.
// Source: huggingface/tokenizers and the crates it is built with, compared over all code points.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vfm::text {

/// Returns the code point at `at`, and moves `at` behind it. Well-formed UTF-8 only, `at` at a
/// boundary.
char32_t next_code_point(std::string_view utf8, std::size_t& at);
void append_code_point(std::string& utf8, char32_t c);
std::size_t count_code_points(std::string_view utf8);
/// The begin of the code point before `end`; end > 0.
std::size_t previous_boundary(std::string_view utf8, std::size_t end);

bool is_space(char32_t c);    ///< White_Space
bool is_word(char32_t c);     ///< \w of Unicode TR 18: letters, marks, digits, connectors, joiners
bool is_numeric(char32_t c);  ///< Nd, Nl, No

// BERT's classes, of Unicode 8.
bool is_bert_control(char32_t c);      ///< Cc, Cf, Co, except tab and line ends
bool is_bert_punctuation(char32_t c);  ///< P*, and ASCII's symbols
bool is_bert_accent(char32_t c);       ///< Mn
bool is_cjk_ideograph(char32_t c);     ///< BERT's tokenizer puts spaces around these

/// Mn, Mc and Me of Unicode 9, which the normalizer StripAccents removes.
bool is_combining_mark(char32_t c);

/// Appends the lower case of one character, without regard to its neighbours.
void append_lower_case(std::string& utf8, char32_t c);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// The normal form of Unicode 9: newer characters are unchanged.
std::string normal_form(std::string_view utf8, NormalForm form);

}  // namespace vfm::text
