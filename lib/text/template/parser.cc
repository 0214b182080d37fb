// Statements of a chat template.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/template/expression_parser.h"
#include "text/template/syntax.h"

namespace vfm::text::jinja {
namespace {

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Template run() {
    Template made{what_, statements({})};
    return made;
  }

 private:
  using Kind = Statement::Kind;
  using Ends = std::initializer_list<std::string_view>;

  Statement begin(Kind kind) const {
    Statement made;
    made.kind = kind;
    made.line = token().line;
    return made;
  }

  /// Reads statements up to a tag in `ends`. The name of that tag is then the current token.
  std::vector<Statement> statements(Ends ends) {
    const Level level(*this);
    std::vector<Statement> made;
    for (;;) {
      if (token().kind == Token::Kind::end) {
        if (ends.size() > 0) refuse("'{}' is missing at the end", *(ends.end() - 1));
        return made;
      }
      if (token().kind == Token::Kind::data) {
        made.push_back(begin(Kind::text));
        made.back().text = take().text;
      } else if (token().kind == Token::Kind::print_begin) {
        made.push_back(begin(Kind::print));
        take();
        made.back().expression = tuple();
        need(Token::Kind::print_end, "'}}'");
      } else {
        take();
        for (const std::string_view end : ends)
          if (word(end)) return made;
        made.push_back(statement());
      }
    }
  }

  /// Reads the rest of a tag, its body, and its end tag.
  Statement statement() {
    const std::string name = token().kind == Token::Kind::name ? token().text : "";
    if (name == "if") return branch();
    if (name == "for") return loop();
    if (name == "set") return set();
    if (name == "macro") return macro();
    if (name == "generation") {
      Statement made = begin(Kind::group);
      made.body = block({"endgeneration"});
      close();
      return made;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) refuse("'{}' stands in no loop", name);
      Statement made = begin(name == "break" ? Kind::leave : Kind::next);
      close();
      return made;
    }
    if (name.empty()) refuse("a tag has no name");
    refuse("the tag '{}' is not supported", name);
  }

  /// Reads the end of a tag. The current token is its name.
  void close() {
    take();
    need(Token::Kind::block_end, "'%}'");
  }

  /// Reads the end of a tag, and the statements up to a tag in `ends`.
  std::vector<Statement> inside(Ends ends) {
    take_sign(":");
    need(Token::Kind::block_end, "'%}'");
    return statements(ends);
  }
  std::vector<Statement> block(Ends ends) {
    take();
    return inside(ends);
  }

  /// The current token is "if" or "elif".
  Statement branch() {
    const Level level(*this);
    Statement made = begin(Kind::branch);
    take();
    made.expression = tuple(false);
    made.body = inside({"elif", "else", "endif"});
    if (word("elif")) {
      made.otherwise.push_back(branch());
      return made;
    }
    if (word("else")) made.otherwise = block({"endif"});
    close();
    return made;
  }

  std::vector<std::string> target() {
    const bool parentheses = take_sign("(");
    std::vector<std::string> names;
    do {
      names.push_back(need_name());
      for (const char* fixed : {"loop", "true", "false", "none", "True", "False", "None"})
        if (names.back() == fixed) refuse("'{}' cannot be assigned to", fixed);
    } while (take_sign(","));
    if (parentheses) need_sign(")");
    return names;
  }

  Statement loop() {
    Statement made = begin(Kind::loop);
    take();
    made.names = target();
    need_word("in");
    made.expression = tuple(false);
    if (take_word("if")) made.condition = expression();
    if (word("recursive")) refuse("a recursive loop is not supported");
    ++loops_;
    made.body = inside({"else", "endfor"});
    --loops_;
    if (word("else")) made.otherwise = block({"endfor"});
    close();
    return made;
  }

  Statement set() {
    Statement made = begin(Kind::set);
    take();
    made.names = target();
    if (made.names.size() == 1 && take_sign(".")) {
      made.attribute = need_name();
      if (made.attribute[0] == '_') refuse("the attribute '{}' is not supported", made.attribute);
    }
    if (take_sign("=")) {
      made.expression = tuple();
      need(Token::Kind::block_end, "'%}'");
      return made;
    }
    if (sign("|")) refuse("a filter of a 'set' block is not supported");
    if (made.names.size() > 1) refuse("expected '='");
    made.kind = Kind::set_block;
    // A break in this block must not leave a loop around it.
    const int loops = std::exchange(loops_, 0);
    made.body = inside({"endset"});
    loops_ = loops;
    close();
    return made;
  }

  Statement macro() {
    Statement made = begin(Kind::macro);
    take();
    made.text = need_name();
    need_sign("(");
    while (!sign(")")) {
      made.names.push_back(need_name());
      if (take_sign("="))
        made.defaults.push_back(expression());
      else if (!made.defaults.empty())
        refuse("a parameter without a default follows one with a default");
      if (!take_sign(",")) break;
    }
    need_sign(")");
    const int loops = std::exchange(loops_, 0);
    made.body = inside({"endmacro"});
    loops_ = loops;
    close();
    return made;
  }

  int loops_ = 0;
};

}  // namespace

Template parse_template(std::string_view source, std::string_view what) {
  return Parser(tokens_of(source, what), std::string(what)).run();
}

}  // namespace vfm::text::jinja
