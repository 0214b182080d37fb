// SPDX-License-Identifier: Apache-2.0
#include "text/text_checks.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

/// Only these words are checked for repetition.
constexpr std::size_t kCheckedWords = 1 << 16;
constexpr std::size_t kRun = 3;

icu::UnicodeString icu_text(std::string_view utf8) {
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(utf8.data(), static_cast<std::int32_t>(utf8.size())));
}

/// Scripts that texts mix.
bool is_east_asian(UScriptCode script) {
  constexpr std::array kScripts = {USCRIPT_HAN, USCRIPT_HIRAGANA, USCRIPT_KATAKANA, USCRIPT_HANGUL,
                                   USCRIPT_BOPOMOFO};
  return std::find(kScripts.begin(), kScripts.end(), script) != kScripts.end();
}

UScriptCode script_of(UChar32 c) {
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(c, &status);
  return U_FAILURE(status) ? USCRIPT_UNKNOWN : script;
}

/// Returns whether `c` is a letter of a known script.
bool has_script(UChar32 c) {
  const UScriptCode script = script_of(c);
  return u_isalpha(c) && script > USCRIPT_INHERITED && script != USCRIPT_UNKNOWN;
}

bool is_strange(UChar32 c) {
  const std::int8_t type = u_charType(c);
  return c == 0xfffd || type == U_UNASSIGNED || type == U_CONTROL_CHAR || type == U_SURROGATE ||
         type == U_PRIVATE_USE_CHAR;
}

double repetition_of(std::string_view utf8) {
  const std::vector<std::string> found = words(utf8, kCheckedWords);
  if (found.size() <= kRun) return 0;
  std::set<std::array<std::string_view, kRun>> runs;
  const std::size_t count = found.size() - kRun + 1;
  for (std::size_t i = 0; i < count; ++i)
    runs.insert({found[i], found[i + 1], found[i + 2]});
  return 1 - static_cast<double>(runs.size()) / static_cast<double>(count);
}

bool has_end(const icu::UnicodeString& text) {
  for (std::int32_t i = text.length(); i > 0;) {
    i = text.moveIndex32(i, -1);
    const UChar32 c = text.char32At(i);
    if (u_hasBinaryProperty(c, UCHAR_S_TERM)) return true;
    const std::int8_t type = u_charType(c);
    const bool closes = type == U_END_PUNCTUATION || type == U_FINAL_PUNCTUATION ||
                        type == U_INITIAL_PUNCTUATION || c == '"' || c == '\'';
    if (!closes && !u_isUWhiteSpace(c)) return false;
  }
  return false;
}

}  // namespace

std::vector<std::string> sentences(std::string_view utf8, std::size_t limit) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString text = icu_text(utf8);
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createSentenceInstance(icu::Locale::getRoot(), status));
  if (U_FAILURE(status)) fail("Unicode: cannot find sentences: {}", u_errorName(status));
  breaks->setText(text);
  std::vector<std::string> found;
  std::int32_t begin = breaks->first();
  while (begin < text.length() && found.size() < limit) {
    const bool last = found.size() + 1 == limit;
    const std::int32_t next = last ? text.length() : breaks->next();
    std::string one;
    text.tempSubStringBetween(begin, next).toUTF8String(one);
    begin = next;
    if (one = trimmed(one); !one.empty()) found.push_back(std::move(one));
  }
  return found;
}

TextChecks check_text(std::string_view utf8) {
  const icu::UnicodeString text = icu_text(utf8);
  TextChecks checks;
  checks.repetition = repetition_of(utf8);
  checks.ended = has_end(text);
  std::map<UScriptCode, std::int64_t> scripts;
  std::int64_t all = 0, strange = 0, east_asian = 0;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (u_isUWhiteSpace(c)) continue;
    ++all;
    strange += is_strange(c);
    if (has_script(c)) {
      ++scripts[script_of(c)];
      east_asian += is_east_asian(script_of(c));
    }
  }
  std::int64_t letters = 0, most = 0, most_weight = 0;
  UScriptCode main = USCRIPT_UNKNOWN;
  for (const auto& [script, count] : scripts) {
    letters += count;
    const std::int64_t weight = is_east_asian(script) ? east_asian : count;
    if (weight < most_weight || (weight == most_weight && count <= most)) continue;
    most_weight = weight;
    most = count;
    main = script;
  }
  if (most > 0) checks.script = uscript_getName(main);
  if (all > 0)
    checks.clean =
        1 - static_cast<double>(strange + letters - most_weight) / static_cast<double>(all);
  return checks;
}

}  // namespace vfm::text
