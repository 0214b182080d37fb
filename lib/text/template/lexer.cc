// SPDX-License-Identifier: Apache-2.0
#include "text/template/lexer.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "text/characters.h"
#include "text/template/python_text.h"

namespace vfm::text::jinja {
namespace {

/// Converts line ends to "\n", and removes the last one.
std::string normal_lines(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
 public:
  Lexer(std::string source, std::string_view what) : source_(std::move(source)), what_(what) {}

  std::vector<Token> run() {
    while (at_ < source_.size())
      text();
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  using Kind = Token::Kind;

  template <class... Args>
  [[noreturn]] void refuse(FormatString<Args...> pattern, Args&&... args) const {
    fail_usage("{}, line {}: {}", what_, line_, vfm::format(pattern, std::forward<Args>(args)...));
  }

  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  bool here(std::string_view text) const {
    return std::string_view(source_).substr(at_, text.size()) == text;
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void skip(std::size_t count) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(count), '\n'));
    at_ += count;
  }
  void skip_space() {
    const std::string_view rest = std::string_view(source_).substr(at_);
    skip(rest.size() - stripped(rest, nullptr, true, false).size());
  }

  /// Reads the text up to the next tag, and the tag.
  void text() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == source_.npos || tag + 1 >= source_.size()) {
        tag = source_.size();
        break;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    std::string_view data = std::string_view(source_).substr(at_, tag - at_);
    const std::string before(data);
    if (tag < source_.size()) {
      const char kind = source_[tag + 1], sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      data = kept(data, kind, sign);
    }
    if (!data.empty()) add(Kind::data, std::string(data));
    skip(before.size());
    if (tag == source_.size()) return;
    const char kind = source_[at_ + 1];
    skip(2);
    if (peek() == '-' || peek() == '+') skip(1);
    line_starts_ = false;
    if (kind == '#')
      comment();
    else
      tag_of(kind == '%');
  }

  /// Returns the text before a tag without the white space that the tag removes.
  std::string_view kept(std::string_view data, char kind, char sign) const {
    if (sign == '-') return stripped(data, nullptr, false, true);
    if (sign == '+' || kind == '{') return data;
    const std::size_t line = data.rfind('\n') == data.npos ? 0 : data.rfind('\n') + 1;
    if (line == 0 && !line_starts_) return data;
    return stripped(data.substr(line), nullptr, true, false).empty() ? data.substr(0, line) : data;
  }

  /// Skips white space behind a tag or comment.
  void behind(char sign, bool trims) {
    const std::size_t begin = at_;
    if (sign == '-')
      skip_space();
    else if (sign != '+' && trims && peek() == '\n')
      skip(1);
    line_starts_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == source_.npos) refuse("a comment does not end");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    skip(end + 2 - at_);
    behind(sign, true);
  }

  void tag_of(bool block) {
    const int begin = line_;
    add(block ? Kind::block_begin : Kind::print_begin, "");
    const std::string_view close = block ? "%}" : "}}";
    brackets_.clear();
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) refuse("the tag that begins in line {} does not end", begin);
      const bool sign = peek() == '-' || (block && peek() == '+');
      if (brackets_.empty() &&
          (here(close) || (sign && std::string_view(source_).substr(at_ + 1, 2) == close))) {
        const char which = sign ? peek() : '\0';
        add(block ? Kind::block_end : Kind::print_end, "");
        skip(sign ? 3 : 2);
        behind(which, block);
        return;
      }
      part();
    }
  }

  void part() {
    const char c = peek();
    if (is_digit(c)) return number();
    if (begins_name(c)) {
      std::size_t end = at_;
      while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end])))
        ++end;
      add(Kind::name, source_.substr(at_, end - at_));
      return skip(end - at_);
    }
    if (c == '\'' || c == '"') return string(c);
    for (const std::string_view sign : {"**", "//", "==", "!=", ">=", "<="})
      if (here(sign)) {
        add(Kind::sign, std::string(sign));
        return skip(2);
      }
    if (std::string_view("+-/*%~[](){}><=.:|,").find(c) == std::string_view::npos)
      refuse("the character '{}' is not expected here", first_character());
    bracket(c);
    add(Kind::sign, std::string(1, c));
    skip(1);
  }

  std::string first_character() const {
    std::size_t end = at_;
    next_code_point(source_, end);
    return source_.substr(at_, end - at_);
  }

  void bracket(char c) {
    if (c == '(') brackets_ += ')';
    if (c == '[') brackets_ += ']';
    if (c == '{') brackets_ += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets_.empty() || brackets_.back() != c) refuse("'{}' is not expected here", c);
    brackets_.pop_back();
  }

  std::size_t digits_from(std::size_t begin) const {
    std::size_t end = begin;
    while (end < source_.size() && (is_digit(source_[end]) || (source_[end] == '_' && end > begin)))
      ++end;
    return end;
  }

  void number() {
    std::size_t end = digits_from(at_);
    bool real = false;
    const auto at = [&](std::size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    // The dot in "messages.0.role" is not a decimal point.
    const bool member = !tokens_.empty() && tokens_.back().is(Kind::sign, ".");
    if (!member && at(end) == '.' && is_digit(at(end + 1))) {
      real = true;
      end = digits_from(end + 1);
    }
    if (!member && (at(end) == 'e' || at(end) == 'E')) {
      const std::size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
      if (is_digit(at(end + 1 + sign))) {
        real = true;
        end = digits_from(end + 1 + sign);
      }
    }
    std::string text = source_.substr(at_, end - at_);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    if (begins_name(at(end)) || (!real && text.size() > 1 && text[0] == '0'))
      refuse("'{}' is not a number that is supported", source_.substr(at_, end + 1 - at_));
    add(real ? Kind::real : Kind::integer, std::move(text));
    skip(end - at_);
  }

  void string(char quote) {
    const int begin = line_;
    std::string text;
    skip(1);
    while (peek() != quote) {
      if (at_ >= source_.size()) {
        line_ = begin;
        refuse("a string does not end");
      }
      if (peek() == '\\') {
        escape(text);
      } else {
        text += peek();
        skip(1);
      }
    }
    const int end = line_;
    line_ = begin;
    add(Kind::string, std::move(text));
    line_ = end;
    skip(1);
  }

  void escape(std::string& text) {
    static constexpr std::string_view kLetters = "ntr\\'\"abfv", kMeant = "\n\t\r\\'\"\a\b\f\v";
    const char c = peek(1);
    if (const std::size_t i = kLetters.find(c); i != kLetters.npos && c != '\0') {
      text += kMeant[i];
      return skip(2);
    }
    if (c == '\n') return skip(2);
    if (c == 'x' || c == 'u' || c == 'U') return code(text, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16, 2);
    if (c >= '0' && c <= '7') {
      std::size_t count = 1;
      while (count < 3 && peek(1 + count) >= '0' && peek(1 + count) <= '7')
        ++count;
      return code(text, count, 8, 1);
    }
    if (c == 'N') refuse("the escape '\\N' is not supported");
    text += '\\';
    skip(1);
  }

  /// Reads `count` digits behind the `begin` characters of an escape.
  void code(std::string& text, std::size_t count, int base, std::size_t begin) {
    const std::string digits = source_.substr(std::min(at_ + begin, source_.size()), count);
    std::uint32_t code = 0;
    for (const char c : digits) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const std::size_t digit = kDigits.find(lower);
      if (digit == kDigits.npos || static_cast<int>(digit) >= base) code = 0x110000;
      if (code < 0x110000)
        code = code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit);
    }
    if (digits.size() < count || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      refuse("'\\{}{}' is not a character", begin == 2 ? std::string(1, peek(1)) : "", digits);
    append_code_point(text, code);
    skip(begin + count);
  }

  std::string source_;
  std::string_view what_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
  std::string brackets_;  // Expected closing brackets.
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, std::string_view what) {
  return Lexer(normal_lines(source), what).run();
}

}  // namespace vfm::text::jinja
