// SPDX-License-Identifier: Apache-2.0
#include "shard/comparisons.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace vfm::shard {
namespace {

enum class Token { name, keyword, text, number, sign, end };

struct Lexeme {
  Token token = Token::end;
  std::string text;   // A name without quotes, or a keyword in capitals.
  std::string shown;  // As written.
};

constexpr std::string_view kKeywords[] = {
    "AND",    "OR",   "NOT",   "IN",      "BETWEEN", "WHEN", "THEN",   "ELSE",
    "END",    "CASE", "IS",    "NULL",    "ISNULL",  "LIKE", "GLOB",   "NOTNULL",
    "ESCAPE", "TRUE", "FALSE", "COLLATE", "CAST",    "AS",   "SELECT", "EXISTS"};

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Splits an expression into tokens.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Lexeme> all() {
    std::vector<Lexeme> list;
    for (pass_blanks(); at_ < text_.size(); pass_blanks()) {
      const std::size_t begin = at_;
      Lexeme one = next();
      one.shown = text_.substr(begin, at_ - begin);
      list.push_back(std::move(one));
    }
    return list;
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void pass_to(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }
  void pass_blanks() {
    for (;;) {
      if (std::isspace(static_cast<unsigned char>(peek())))
        ++at_;
      else if (peek() == '-' && peek(1) == '-')
        pass_to("\n");
      else if (peek() == '/' && peek(1) == '*')
        pass_to("*/");
      else
        return;
    }
  }
  /// Reads to the closing quote. A doubled quote stands for one quote.
  std::string quoted(char end) {
    std::string inside;
    for (++at_; at_ < text_.size(); ++at_) {
      if (peek() == end && (end == ']' || peek(1) != end)) break;
      if (peek() == end) ++at_;
      inside += peek();
    }
    at_ = std::min(at_ + 1, text_.size());
    return inside;
  }
  Lexeme next() {
    const char c = peek();
    if (c == '\'') return {Token::text, quoted(c), {}};
    if (c == '"' || c == '`') return {Token::name, quoted(c), {}};
    if (c == '[') return {Token::name, quoted(']'), {}};
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1)))))
      return number();
    const std::size_t begin = at_;
    if (in_name(c)) {
      while (in_name(peek()))
        ++at_;
      return word(std::string(text_.substr(begin, at_ - begin)));
    }
    constexpr std::string_view kSigns[] = {
        "->>", "->", "==", "<=", ">=", "<>", "!=", "||", "<<", ">>"};
    for (const std::string_view sign : kSigns)
      if (text_.substr(at_).starts_with(sign)) {
        at_ += sign.size();
        return {Token::sign, std::string(sign), {}};
      }
    ++at_;
    return {Token::sign, std::string(1, c), {}};
  }
  Lexeme number() {
    while (in_name(peek()) || peek() == '.' ||
           ((peek() == '-' || peek() == '+') && std::tolower(text_[at_ - 1]) == 'e'))
      ++at_;
    return {Token::number, "", {}};
  }
  static Lexeme word(std::string text) {
    std::string capitals = text;
    for (char& c : capitals)
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (std::find(std::begin(kKeywords), std::end(kKeywords), capitals) != std::end(kKeywords))
      return {Token::keyword, capitals, {}};
    return {Token::name, std::move(text), {}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Finder {
 public:
  explicit Finder(std::string_view expression) : all_(Reader(expression).all()) {}

  std::vector<Comparison> found() {
    for (std::size_t i = 1; i < all_.size(); ++i) {
      if (is_comparison(all_[i]))
        compare(i);
      else if (is(i, Token::keyword, "BETWEEN"))
        between(i);
      else if (is(i, Token::keyword, "IN"))
        in_list(i);
    }
    return std::move(found_);
  }

 private:
  const Lexeme& at(std::size_t i) const {
    static const Lexeme kEnd;
    return i < all_.size() ? all_[i] : kEnd;
  }
  bool is(std::size_t i, Token token, std::string_view text) const {
    return at(i).token == token && at(i).text == text;
  }
  static bool is_comparison(const Lexeme& one) {
    constexpr std::string_view kSigns[] = {"=", "==", "<", ">", "<=", ">=", "!=", "<>"};
    return one.token == Token::sign &&
           std::find(std::begin(kSigns), std::end(kSigns), one.text) != std::end(kSigns);
  }
  /// Returns whether a term begins at `i`, so that it is not part of a larger computation.
  bool begins(std::size_t i) const {
    if (i == 0 || is(i - 1, Token::sign, "(") || is(i - 1, Token::sign, ",")) return true;
    const Lexeme& before = at(i - 1);
    return before.token == Token::keyword && before.text != "BETWEEN" && before.text != "LIKE" &&
           before.text != "GLOB" && before.text != "IS" && before.text != "IN";
  }
  bool ends(std::size_t i) const {
    return at(i).token == Token::end || is(i, Token::sign, ")") || is(i, Token::sign, ",") ||
           (at(i).token == Token::keyword && at(i).text != "COLLATE");
  }
  /// Reads a constant, which may have a sign, and moves `i` behind it.
  bool constant(std::size_t& i, Comparison& into) const {
    const bool sign = is(i, Token::sign, "-") || is(i, Token::sign, "+");
    const Lexeme& one = at(i + (sign ? 1 : 0));
    if (one.token != Token::number && (sign || one.token != Token::text)) return false;
    into.text = one.token == Token::text;
    into.constant = (sign ? at(i).shown : "") + one.shown;
    i += sign ? 2 : 1;
    return true;
  }
  /// Reads the field before `i`. NOT may be between them.
  bool field_before(std::size_t i, Comparison& into) const {
    if (i > 0 && is(i - 1, Token::keyword, "NOT")) --i;
    if (i == 0 || at(i - 1).token != Token::name || !begins(i - 1)) return false;
    into.field = at(i - 1).text;
    return true;
  }
  void compare(std::size_t i) {
    Comparison one;
    std::size_t end = i + 1;
    if (field_before(i, one) && constant(end, one) && ends(end)) {
      found_.push_back(one);
      return;
    }
    // The constant comes first.
    std::size_t begin = i - 1;
    if (begin > 0 && at(begin).token == Token::number &&
        (is(begin - 1, Token::sign, "-") || is(begin - 1, Token::sign, "+")))
      --begin;
    std::size_t after = begin;
    if (at(i + 1).token != Token::name || !ends(i + 2) || !begins(begin) || !constant(after, one) ||
        after != i)
      return;
    one.field = at(i + 1).text;
    found_.push_back(one);
  }
  void between(std::size_t i) {
    Comparison low;
    std::size_t end = i + 1;
    if (!field_before(i, low) || !constant(end, low) || !is(end, Token::keyword, "AND")) return;
    Comparison high = low;
    if (!constant(++end, high) || !ends(end)) return;
    found_.push_back(low);
    if (high.text != low.text) found_.push_back(high);
  }
  /// Takes only lists whose values are all of one type.
  void in_list(std::size_t i) {
    Comparison first;
    std::size_t end = i + 1;
    if (!is(end, Token::sign, "(") || !field_before(i, first) || !constant(++end, first)) return;
    for (Comparison next = first; is(end, Token::sign, ",");)
      if (!constant(++end, next) || next.text != first.text) return;
    if (is(end, Token::sign, ")")) found_.push_back(first);
  }

  const std::vector<Lexeme> all_;
  std::vector<Comparison> found_;
};

}  // namespace

std::vector<Comparison> constant_comparisons(std::string_view expression) {
  return Finder(expression).found();
}

}  // namespace vfm::shard
