// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/ucnv.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace vfm::text {
namespace {

void check(UErrorCode status, const char* what) {
  if (U_FAILURE(status)) fail("Unicode: cannot {}: {}", what, u_errorName(status));
}

icu::UnicodeString from_utf8(std::string_view utf8) {
  // ICU counts in 32 bits.
  if (utf8.size() > (std::size_t{1} << 30)) fail("a text of more than 1 GiB cannot be processed");
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(utf8.data(), static_cast<std::int32_t>(utf8.size())));
}

std::string utf8_of(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

/// Returns the encoding that a byte order mark or zero bytes show, or null for UTF-8.
const char* sixteen_or_more(std::string_view bytes) {
  if (bytes.starts_with(std::string_view("\xff\xfe\0\0", 4))) return "UTF-32";
  if (bytes.starts_with(std::string_view("\0\0\xfe\xff", 4))) return "UTF-32";
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) return "UTF-16";
  // Digits, spaces and line ends in UTF-16 have a zero in every other byte.
  std::size_t zeros[2] = {0, 0};
  const std::size_t look = std::min<std::size_t>(bytes.size(), 4096);
  for (std::size_t i = 0; i < look; ++i)
    zeros[i & 1] += bytes[i] == '\0';
  if (zeros[1] * 8 > look && zeros[0] * 8 < zeros[1]) return "UTF-16LE";
  if (zeros[0] * 8 > look && zeros[1] * 8 < zeros[0]) return "UTF-16BE";
  return nullptr;
}

bool is_blank(UChar32 c) {
  return u_isUWhiteSpace(c) || u_charType(c) == U_CONTROL_CHAR;
}

/// The characters that Python's str.strip() removes: white space and four ASCII separators.
bool is_python_space(UChar32 c) {
  return u_isUWhiteSpace(c) || (c >= 0x1c && c <= 0x1f);
}

bool is_word_part(UChar32 c) {
  const std::uint32_t mask = U_GET_GC_MASK(c);
  return !is_blank(c) && (mask & (U_GC_P_MASK | U_GC_Z_MASK | U_GC_C_MASK | U_GC_M_MASK)) == 0;
}

std::unique_ptr<icu::BreakIterator> break_iterator(bool by_word, const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Locale& root = icu::Locale::getRoot();
  std::unique_ptr<icu::BreakIterator> breaks(
      by_word ? icu::BreakIterator::createWordInstance(root, status)
              : icu::BreakIterator::createCharacterInstance(root, status));
  check(status, "find the boundaries of words");
  breaks->setText(text);
  return breaks;
}

}  // namespace

std::string valid_utf8(std::string_view utf8) {
  return utf8_of(from_utf8(utf8));
}

std::string to_utf8(std::string_view bytes) {
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  const char* encoding = sixteen_or_more(bytes);
  if (encoding == nullptr) return utf8_of(from_utf8(bytes));
  if (bytes.size() > (std::size_t{1} << 30)) fail("a text of more than 1 GiB cannot be processed");
  icu::UnicodeString text(bytes.data(), static_cast<std::int32_t>(bytes.size()), encoding);
  if (text.isBogus()) fail("Unicode: cannot decode {}", encoding);
  if (text.startsWith(UChar32{0xfeff})) text.remove(0, 1);
  return utf8_of(text);
}

std::string clean_line(std::string_view utf8) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
  check(status, "normalise");
  const icu::UnicodeString text = nfc->normalize(from_utf8(utf8), status);
  check(status, "normalise");
  icu::UnicodeString out;
  bool gap = false;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (is_blank(c)) {
      gap = true;
      continue;
    }
    if (gap && !out.isEmpty()) out.append(UChar32{' '});
    gap = false;
    out.append(c);
  }
  return utf8_of(out);
}

std::string first_characters(std::string_view utf8, std::size_t count) {
  const icu::UnicodeString text = from_utf8(utf8);
  const auto characters = break_iterator(false, text);
  std::int32_t end = 0;
  for (std::size_t n = 0; n < count && end != text.length(); ++n)
    end = characters->next();
  if (end == text.length()) return utf8_of(text);
  const auto breaks = break_iterator(true, text);
  std::int32_t word_end = breaks->isBoundary(end) ? end : breaks->preceding(end);
  if (word_end * 2 < end) word_end = end;
  while (word_end > 0 && is_blank(text.char32At(text.moveIndex32(word_end, -1))))
    --word_end;
  return utf8_of(text.tempSubString(0, word_end));
}

std::string lower_case(std::string_view utf8) {
  return utf8_of(from_utf8(utf8).toLower(icu::Locale::getRoot()));
}

std::string trimmed(std::string_view utf8) {
  const icu::UnicodeString text = from_utf8(utf8);
  std::int32_t begin = 0, end = text.length();
  while (begin < end && is_python_space(text.char32At(begin)))
    begin = text.moveIndex32(begin, 1);
  while (end > begin && is_python_space(text.char32At(text.moveIndex32(end, -1))))
    end = text.moveIndex32(end, -1);
  return utf8_of(text.tempSubStringBetween(begin, end));
}

std::string without_punctuation(std::string_view utf8) {
  const icu::UnicodeString text = from_utf8(utf8);
  icu::UnicodeString out;
  bool space = false;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (c > ' ' && c < 0x7f && !u_isalnum(c)) continue;
    if (is_python_space(c)) {
      space = true;
      continue;
    }
    if (space && !out.isEmpty()) out.append(UChar32{' '});
    space = false;
    out.append(c);
  }
  return utf8_of(out);
}

std::vector<std::string> words(std::string_view utf8, std::size_t limit) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfkc = icu::Normalizer2::getNFKCInstance(status);
  const icu::Normalizer2* fold = icu::Normalizer2::getNFKCCasefoldInstance(status);
  check(status, "normalise");
  // Case folding comes after the split into words, because it drops the joiners that hold emoji
  // sequences together. The compatibility forms decide where words end.
  const icu::UnicodeString text = nfkc->normalize(from_utf8(utf8), status);
  check(status, "normalise");
  const auto breaks = break_iterator(true, text);
  std::vector<std::string> found;
  std::int32_t begin = breaks->first();
  for (std::int32_t end = breaks->next(); end != icu::BreakIterator::DONE && found.size() < limit;
       begin = end, end = breaks->next()) {
    bool wanted = false;
    for (std::int32_t i = begin; i < end && !wanted; i = text.moveIndex32(i, 1))
      wanted = is_word_part(text.char32At(i));
    if (!wanted) continue;
    const icu::UnicodeString word = fold->normalize(text.tempSubStringBetween(begin, end), status);
    check(status, "fold case");
    found.push_back(utf8_of(word));
  }
  return found;
}

}  // namespace vfm::text
