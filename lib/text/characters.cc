// SPDX-License-Identifier: Apache-2.0
#include "text/characters.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include "base/error.h"

namespace vfm::text {
namespace {

UChar32 icu_char(char32_t c) {
  return static_cast<UChar32>(c);
}

/// Returns whether the general category of `c` is in `mask`, and `c` is in Unicode `version`.
bool in_category(char32_t c, std::uint32_t mask, int version) {
  if ((U_GET_GC_MASK(icu_char(c)) & mask) == 0) return false;
  UVersionInfo age;
  u_charAge(icu_char(c), age);
  return age[0] <= version;
}

constexpr int kAnyVersion = 255;

const icu::Normalizer2& normalizer(NormalForm form) {
  const auto make = [](NormalForm wanted) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* all =
        wanted == NormalForm::nfc    ? icu::Normalizer2::getNFCInstance(status)
        : wanted == NormalForm::nfd  ? icu::Normalizer2::getNFDInstance(status)
        : wanted == NormalForm::nfkc ? icu::Normalizer2::getNFKCInstance(status)
                                     : icu::Normalizer2::getNFKDInstance(status);
    static const icu::UnicodeSet known(u"[:age=9.0:]", status);
    if (U_FAILURE(status)) fail("Unicode: cannot normalise: {}", u_errorName(status));
    return icu::FilteredNormalizer2(*all, known);
  };
  static const icu::FilteredNormalizer2 forms[] = {make(NormalForm::nfc), make(NormalForm::nfd),
                                                   make(NormalForm::nfkc), make(NormalForm::nfkd)};
  return forms[static_cast<int>(form)];
}

}  // namespace

char32_t next_code_point(std::string_view utf8, std::size_t& at) {
  const auto byte = [&] { return static_cast<unsigned char>(utf8[at++]); };
  const char32_t first = byte();
  if (first < 0x80) return first;
  int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  char32_t c = first & (0x3fu >> more);
  for (; more > 0 && at < utf8.size(); --more)
    c = c << 6 | (byte() & 0x3fu);
  return c;
}

void append_code_point(std::string& utf8, char32_t c) {
  char bytes[U8_MAX_LENGTH];
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, c);
  utf8.append(bytes, size);
}

std::size_t count_code_points(std::string_view utf8) {
  std::size_t count = 0;
  for (const char byte : utf8)
    count += (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;
  return count;
}

std::size_t previous_boundary(std::string_view utf8, std::size_t end) {
  do
    --end;
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & 0xc0u) == 0x80u);
  return end;
}

bool is_space(char32_t c) {
  return u_isUWhiteSpace(icu_char(c));
}

bool is_word(char32_t c) {
  return u_hasBinaryProperty(icu_char(c), UCHAR_ALPHABETIC) || c == 0x200c || c == 0x200d ||
         in_category(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK, kAnyVersion);
}

bool is_numeric(char32_t c) {
  return in_category(c, U_GC_N_MASK, kAnyVersion);
}

bool is_bert_control(char32_t c) {
  return c != '\t' && c != '\n' && c != '\r' &&
         in_category(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK, 8);
}

// The characters below had another category in the older versions of Unicode.

bool is_bert_punctuation(char32_t c) {
  const bool ascii = c > ' ' && c < 0x7f && !u_isalnum(icu_char(c));
  return ascii || c == 0x166d || c == 0x111c9 || in_category(c, U_GC_P_MASK, 8);
}

bool is_bert_accent(char32_t c) {
  if (c == 0x1885 || c == 0x1886 || c == 0xa9bd || c == 0x111c9) return false;
  return c == 0x1734 || in_category(c, U_GC_MN_MASK, 8);
}

bool is_combining_mark(char32_t c) {
  return c != 0x111c9 && (c == 0x1cf2 || c == 0x1cf3 || in_category(c, U_GC_M_MASK, 9));
}

bool is_cjk_ideograph(char32_t c) {
  constexpr char32_t kBlocks[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                     {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                     {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  for (const auto& [first, last] : kBlocks)
    if (c >= first && c <= last) return true;
  return false;
}

void append_lower_case(std::string& utf8, char32_t c) {
  append_code_point(utf8, static_cast<char32_t>(u_tolower(icu_char(c))));
  // The only character whose lower case has two characters.
  if (c == 0x130) append_code_point(utf8, 0x307);
}

std::string normal_form(std::string_view utf8, NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  const icu::UnicodeString text = icu::UnicodeString::fromUTF8(
      icu::StringPiece(utf8.data(), static_cast<std::int32_t>(utf8.size())));
  normalizer(form).normalize(text, status).toUTF8String(out);
  if (U_FAILURE(status)) fail("Unicode: cannot normalise: {}", u_errorName(status));
  return out;
}

}  // namespace vfm::text
