// SPDX-License-Identifier: Apache-2.0
#include "text/pattern.h"

#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace vfm::text {
namespace {

/// ICU counts in units of about a millisecond. A prompt takes less than one.
constexpr std::int32_t kTimeLimit = 2000, kStackLimit = 64 << 20;

/// Refuses expressions that ICU and Oniguruma may read differently.
class Checker {
 public:
  Checker(std::string_view expression, std::string_view what) : text_(expression), what_(what) {}

  void check() {
    while (at_ < text_.size())
      step();
  }

 private:
  [[noreturn]] void refuse(std::string_view part) const {
    fail_usage("{} has the regular expression '{}', whose '{}' is not supported", what_, text_,
               part);
  }

  void step() {
    const std::string_view rest = text_.substr(at_);
    if (rest[0] == '\\') return escape(rest);
    ++at_;
    if (depth_ > 0) {
      if (rest.starts_with("[:") || rest.starts_with("--") || rest.starts_with("&&"))
        refuse(rest.substr(0, 2));
      if (rest[0] == '[') ++depth_;
      if (rest[0] == ']') --depth_;
      return;
    }
    if (rest[0] == '.' || rest[0] == '^' || rest[0] == '$') refuse(rest.substr(0, 1));
    if (rest[0] == '(' && rest.size() > 1 && rest[1] == '?') group(rest);
    if (rest[0] == '}' && rest.size() > 1 && rest[1] == '+')
      refuse("}+");  // Possessive in one library only.
    if (rest[0] == '[') {
      depth_ = 1;
      if (at_ < text_.size() && text_[at_] == '^') ++at_;
    }
  }

  void group(std::string_view rest) const {
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"})
      if (rest.starts_with(known)) return;
    refuse(rest.substr(0, 3));
  }

  void escape(std::string_view rest) {
    if (rest.size() < 2) refuse(rest);
    at_ += 2;
    const char c = rest[1];
    if (c == 'p' || c == 'P') return property(rest);
    const bool punctuation = static_cast<unsigned char>(c) < 0x80 && !u_isalnum(c);
    if (!punctuation && std::string_view("sSdDrnt").find(c) == std::string_view::npos)
      refuse(rest.substr(0, 2));
  }

  /// Takes general categories and scripts: \p{L}, \p{Lu}, \p{Han}.
  void property(std::string_view rest) {
    const std::size_t close = rest.find('}');
    if (rest.size() < 4 || rest[2] != '{' || close == std::string_view::npos)
      refuse(rest.substr(0, 3));
    const std::string name(rest.substr(3, close - 3));
    at_ += close - 1;
    if (u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, name.c_str()) != UCHAR_INVALID_CODE &&
        name.size() <= 2)
      return;
    if (u_getPropertyValueEnum(UCHAR_SCRIPT, name.c_str()) == UCHAR_INVALID_CODE)
      refuse(rest.substr(0, close + 1));
  }

  std::string_view text_, what_;
  std::size_t at_ = 0;
  int depth_ = 0;  ///< Of brackets.
};

}  // namespace

struct Pattern::Compiled {
  std::string expression, what;
  std::unique_ptr<icu::RegexPattern> regex;  ///< Null if `expression` is a plain string.
};

Pattern::Pattern() = default;
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

Pattern::Pattern(std::string_view expression, std::string_view what) {
  Checker(expression, what).check();
  UErrorCode status = U_ZERO_ERROR;
  UParseError where;
  const auto text = icu::UnicodeString::fromUTF8(
      icu::StringPiece(expression.data(), static_cast<std::int32_t>(expression.size())));
  std::unique_ptr<icu::RegexPattern> regex(icu::RegexPattern::compile(text, where, status));
  if (U_FAILURE(status))
    fail_usage("{} has the regular expression '{}', which is not supported: {}", what, expression,
               u_errorName(status));
  compiled_.reset(new Compiled{std::string(expression), std::string(what), std::move(regex)});
}

Pattern Pattern::from_json(const Json& owner, std::string_view what) {
  const auto found = owner.find("pattern");
  if (found != owner.end() && found->is_object()) {
    if (const auto expression = get_string(*found, "Regex")) return Pattern(*expression, what);
    if (const auto plain = get_string(*found, "String"); plain && !plain->empty()) {
      Pattern pattern;
      pattern.compiled_.reset(new Compiled{*plain, std::string(what), nullptr});
      return pattern;
    }
  }
  fail_usage("{} has a part without a \"pattern\" that is a String or a Regex", what);
}

std::vector<TextSpan> Pattern::find(std::string_view utf8) const {
  std::vector<TextSpan> spans;
  std::size_t done = 0;
  const auto add = [&](std::size_t begin, std::size_t end) {
    if (begin > done) spans.push_back({done, begin, false});
    spans.push_back({begin, end, true});
    done = end;
  };
  if (!compiled_->regex) {
    const std::string& plain = compiled_->expression;
    for (std::size_t at = 0; (at = utf8.find(plain, at)) != utf8.npos; at += plain.size())
      add(at, at + plain.size());
  } else {
    UErrorCode status = U_ZERO_ERROR;
    UText* text =
        utext_openUTF8(nullptr, utf8.data(), static_cast<std::int64_t>(utf8.size()), &status);
    const std::unique_ptr<UText, decltype(&utext_close)> closed(text, utext_close);
    const std::unique_ptr<icu::RegexMatcher> matcher(compiled_->regex->matcher(status));
    if (U_SUCCESS(status)) {
      matcher->setTimeLimit(kTimeLimit, status);
      matcher->setStackLimit(kStackLimit, status);
      matcher->reset(text);
    }
    bool first = true;
    while (U_SUCCESS(status) && matcher->find(status)) {
      const auto begin = static_cast<std::size_t>(matcher->start64(status));
      const auto end = static_cast<std::size_t>(matcher->end64(status));
      // Oniguruma's iterator skips an empty match at the end of the last match.
      if (begin == end && end == done && !first) continue;
      add(begin, end);
      first = false;
    }
    if (U_FAILURE(status))
      fail("the regular expression '{}' of {} does not get through a text of {} bytes: {}",
           compiled_->expression, compiled_->what, utf8.size(), u_errorName(status));
  }
  if (done < utf8.size()) spans.push_back({done, utf8.size(), false});
  return spans;
}

}  // namespace vfm::text
