// SPDX-License-Identifier: Apache-2.0
#include "text/template/expression_parser.h"

#include <algorithm>
#include <charconv>

namespace vfm::text::jinja {
namespace {

using Kind = Expression::Kind;

constexpr int kDeepestSyntax = 200;

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kDeepest) {
    --parser_.depth_;
    parser_.refuse("nested deeper than {} levels", kDeepest);
  }
}

bool ExpressionParser::take_sign(std::string_view text) {
  if (!sign(text)) return false;
  take();
  return true;
}
bool ExpressionParser::take_word(std::string_view text) {
  if (!word(text)) return false;
  take();
  return true;
}
void ExpressionParser::need_sign(std::string_view text) {
  if (!take_sign(text))
    refuse("expected '{}'{}", text, token().text.empty() ? "" : " before '" + token().text + "'");
}
void ExpressionParser::need_word(std::string_view text) {
  if (!take_word(text)) refuse("expected '{}'", text);
}
std::string ExpressionParser::need_name() {
  if (token().kind != Token::Kind::name) refuse("expected a name");
  return take().text;
}
void ExpressionParser::need(Token::Kind kind, std::string_view name) {
  if (token().kind != kind) {
    if (token().text.empty()) refuse("expected {}", name);
    refuse("'{}' is not expected here", token().text);
  }
  take();
}

Expression ExpressionParser::node(Kind kind, std::string name) const {
  Expression made;
  made.kind = kind;
  made.line = token().line;
  made.name = std::move(name);
  return made;
}

ExpressionPtr ExpressionParser::done(Expression made) const {
  for (const ExpressionPtr& part : made.parts)
    if (part) made.depth = std::max(made.depth, part->depth + 1);
  if (made.depth > kDeepestSyntax) refuse("nested deeper than {} levels", kDeepestSyntax);
  return std::make_unique<const Expression>(std::move(made));
}

ExpressionPtr ExpressionParser::constant(Value value) {
  Expression made = node(Kind::constant);
  made.value = std::move(value);
  return done(std::move(made));
}

ExpressionPtr ExpressionParser::tuple(bool conditional) {
  Expression made = node(Kind::tuple);
  bool several = false;
  for (;;) {
    made.parts.push_back(conditional ? expression() : either());
    if (!take_sign(",")) break;
    several = true;
    const Token::Kind next = token().kind;
    if (next == Token::Kind::print_end || next == Token::Kind::block_end || sign(")")) break;
  }
  return several ? done(std::move(made)) : std::move(made.parts[0]);
}

ExpressionPtr ExpressionParser::expression() {
  const Level level(*this);
  ExpressionPtr value = either();
  while (word("if")) {
    Expression made = node(Kind::conditional);
    take();
    made.parts.push_back(either());
    made.parts.push_back(std::move(value));
    made.parts.push_back(take_word("else") ? expression() : nullptr);
    value = done(std::move(made));
  }
  return value;
}

ExpressionPtr ExpressionParser::chain(Kind kind, Token::Kind of,
                                      std::initializer_list<std::string_view> operators,
                                      const std::function<ExpressionPtr()>& part) {
  ExpressionPtr left = part();
  while (std::any_of(operators.begin(), operators.end(),
                     [&](std::string_view one) { return token().is(of, one); })) {
    Expression made = node(kind, take().text);
    made.parts.push_back(std::move(left));
    made.parts.push_back(part());
    left = done(std::move(made));
  }
  return left;
}

ExpressionPtr ExpressionParser::either() {
  return chain(Kind::logic, Token::Kind::name, {"or"}, [this] { return both(); });
}

ExpressionPtr ExpressionParser::both() {
  return chain(Kind::logic, Token::Kind::name, {"and"}, [this] { return negation(); });
}

ExpressionPtr ExpressionParser::negation() {
  if (!word("not")) return comparison();
  const Level level(*this);
  Expression made = node(Kind::unary, take().text);
  made.parts.push_back(negation());
  return done(std::move(made));
}

ExpressionPtr ExpressionParser::comparison() {
  Expression made = node(Kind::comparison);
  made.parts.push_back(sum());
  for (;;) {
    std::string how;
    if (word("not") && after().is(Token::Kind::name, "in")) {
      take();
      how = "not in";
    } else if (word("in")) {
      how = "in";
    } else {
      for (const std::string_view one : {"==", "!=", "<", "<=", ">", ">="})
        if (sign(one)) how = one;
    }
    if (how.empty()) break;
    take();
    made.words.push_back(std::move(how));
    made.parts.push_back(sum());
  }
  return made.words.empty() ? std::move(made.parts[0]) : done(std::move(made));
}

ExpressionPtr ExpressionParser::sum() {
  return chain(Kind::binary, Token::Kind::sign, {"+", "-"}, [this] { return joined(); });
}

ExpressionPtr ExpressionParser::joined() {
  Expression made = node(Kind::binary, "~");
  made.parts.push_back(product());
  while (take_sign("~"))
    made.parts.push_back(product());
  return made.parts.size() == 1 ? std::move(made.parts[0]) : done(std::move(made));
}

ExpressionPtr ExpressionParser::product() {
  return chain(Kind::binary, Token::Kind::sign, {"*", "/", "//", "%"}, [this] { return power(); });
}

ExpressionPtr ExpressionParser::power() {
  return chain(Kind::binary, Token::Kind::sign, {"**"}, [this] { return unary(true); });
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr value;
  if (sign("-") || sign("+")) {
    const Level level(*this);
    Expression made = node(Kind::unary, take().text);
    made.parts.push_back(unary(false));
    value = done(std::move(made));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  const Token::Kind kind = token().kind;
  if (kind == Token::Kind::name) {
    const std::string& name = token().text;
    for (const char* forms : {"true", "True"})
      if (name == forms) return take(), constant(Value::of(true));
    for (const char* forms : {"false", "False"})
      if (name == forms) return take(), constant(Value::of(false));
    for (const char* forms : {"none", "None"})
      if (name == forms) return take(), constant(Value::none());
    for (const char* keyword : {"if", "else", "in", "is", "and", "or", "not"})
      if (name == keyword) refuse("'{}' is not expected here", name);
    Expression made = node(Kind::name, name);
    take();
    return done(std::move(made));
  }
  if (kind == Token::Kind::string) {
    std::string text;
    while (token().kind == Token::Kind::string)
      text += take().text;
    return constant(Value::of(std::move(text)));
  }
  if (kind == Token::Kind::integer || kind == Token::Kind::real) {
    const std::string text = take().text;
    const char *begin = text.data(), *end = begin + text.size();
    std::int64_t whole = 0;
    double real = 0;
    const auto failed = kind == Token::Kind::integer ? std::from_chars(begin, end, whole).ec
                                                     : std::from_chars(begin, end, real).ec;
    if (failed != std::errc{}) refuse("the number {} is too large", text);
    return constant(kind == Token::Kind::integer ? Value::of(whole) : Value::of(real));
  }
  if (sign("(")) return in_parentheses();
  if (sign("[")) return list();
  if (sign("{")) return mapping();
  if (token().text.empty()) refuse("an expression is missing");
  refuse("'{}' is not expected here", token().text);
}

ExpressionPtr ExpressionParser::in_parentheses() {
  const Level level(*this);
  Expression empty = node(Kind::tuple);
  take();
  if (take_sign(")")) return done(std::move(empty));
  ExpressionPtr value = tuple();
  need_sign(")");
  return value;
}

ExpressionPtr ExpressionParser::list() {
  const Level level(*this);
  Expression made = node(Kind::list);
  take();
  while (!sign("]")) {
    if (!made.parts.empty()) need_sign(",");
    if (sign("]")) break;
    made.parts.push_back(expression());
  }
  take();
  return done(std::move(made));
}

ExpressionPtr ExpressionParser::mapping() {
  const Level level(*this);
  Expression made = node(Kind::mapping);
  take();
  while (!sign("}")) {
    if (!made.parts.empty()) need_sign(",");
    if (sign("}")) break;
    made.parts.push_back(expression());
    need_sign(":");
    made.parts.push_back(expression());
  }
  take();
  return done(std::move(made));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr of) {
  for (;;) {
    if (sign(".") || sign("[")) {
      of = subscript(std::move(of));
    } else if (sign("(")) {
      Expression made = node(Kind::call);
      made.parts.push_back(std::move(of));
      arguments(made);
      of = done(std::move(made));
    } else {
      return of;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr of) {
  const Level level(*this);
  if (take_sign(".")) {
    if (token().kind == Token::Kind::integer) {
      Expression made = node(Kind::item);
      made.parts.push_back(std::move(of));
      made.parts.push_back(primary());
      return done(std::move(made));
    }
    Expression made = node(Kind::attribute);
    made.name = need_name();
    if (made.name[0] == '_') refuse("the attribute '{}' is not supported", made.name);
    made.parts.push_back(std::move(of));
    return done(std::move(made));
  }
  Expression made = node(Kind::item);
  take();
  made.parts.push_back(std::move(of));
  if (!sign(":")) made.parts.push_back(expression());
  if (sign(":")) {
    made.kind = Kind::slice;
    made.parts.resize(2);
    while (made.parts.size() < 4 && take_sign(":"))
      made.parts.push_back(sign(":") || sign("]") ? nullptr : expression());
    made.parts.resize(4);
  }
  need_sign("]");
  return done(std::move(made));
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr of) {
  for (;;) {
    if (word("is")) {
      of = test(std::move(of));
    } else if (sign("|") || sign("(")) {
      const bool filter = take_sign("|");
      Expression made = node(filter ? Kind::filter : Kind::call);
      if (filter) made.name = need_name();
      made.parts.push_back(std::move(of));
      if (sign("(")) arguments(made);
      of = done(std::move(made));
    } else {
      return of;
    }
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr of) {
  take();
  const bool negated = take_word("not");
  Expression made = node(Kind::test);
  made.name = need_name();
  made.parts.push_back(std::move(of));
  const Token::Kind next = token().kind;
  const bool ends = word("else") || word("or") || word("and") || word("if") || word("is");
  const bool value = next == Token::Kind::name || next == Token::Kind::string ||
                     next == Token::Kind::integer || next == Token::Kind::real || sign("[") ||
                     sign("{");
  if (sign("("))
    arguments(made);
  else if (value && !ends)
    made.parts.push_back(postfix(primary()));
  if (!negated) return done(std::move(made));
  Expression negation = node(Kind::unary, "not");
  negation.line = made.line;
  negation.parts.push_back(done(std::move(made)));
  return done(std::move(negation));
}

void ExpressionParser::arguments(Expression& call) {
  const Level level(*this);
  need_sign("(");
  while (!sign(")")) {
    if (sign("*") || sign("**")) refuse("'{}' before an argument is not supported", token().text);
    if (token().kind == Token::Kind::name && after().is(Token::Kind::sign, "=")) {
      call.words.push_back(take().text);
      take();
    } else if (!call.words.empty()) {
      refuse("an argument without a name follows one with a name");
    }
    call.parts.push_back(expression());
    if (!take_sign(",")) break;
  }
  need_sign(")");
}

}  // namespace vfm::text::jinja
