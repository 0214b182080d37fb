// Parses the expressions of a chat template, by Jinja's precedence. syntax.h parses statements.
// Only for lib/text. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/lexer.h"
#include "text/template/syntax.h"

namespace vfm::text::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, std::string what)
      : what_(std::move(what)), tokens_(std::move(tokens)) {}

 protected:
  /// Parses one expression, or a tuple of several expressions with commas between. `conditional`
  /// tells whether "a if b" is allowed.
  ExpressionPtr tuple(bool conditional = true);
  ExpressionPtr expression();

  const Token& token() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool sign(std::string_view text) const { return token().is(Token::Kind::sign, text); }
  bool word(std::string_view text) const { return token().is(Token::Kind::name, text); }
  bool take_sign(std::string_view text);
  bool take_word(std::string_view text);
  void need_sign(std::string_view text);
  void need_word(std::string_view text);
  std::string need_name();
  void need(Token::Kind kind, std::string_view name);
  template <class... Args>
  [[noreturn]] void refuse(FormatString<Args...> pattern, Args&&... args) const {
    Run run{what_, token().line};
    run.refuse(pattern, std::forward<Args>(args)...);
  }

  /// Limits the nesting, which might exhaust the stack.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

  std::string what_;

 private:
  Expression node(Expression::Kind kind, std::string name = {}) const;
  ExpressionPtr done(Expression node) const;
  /// Parses parts that are joined by any of these operators, from left to right.
  ExpressionPtr chain(Expression::Kind kind, Token::Kind of,
                      std::initializer_list<std::string_view> operators,
                      const std::function<ExpressionPtr()>& part);
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr joined();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool filters);
  ExpressionPtr primary();
  ExpressionPtr constant(Value value);
  ExpressionPtr list();
  ExpressionPtr mapping();
  ExpressionPtr in_parentheses();
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  ExpressionPtr filters(ExpressionPtr of);
  ExpressionPtr test(ExpressionPtr of);
  void arguments(Expression& call);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace vfm::text::jinja
