// A chat template as a tree. Only for lib/text. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace vfm::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Expression {
  enum class Kind {
    constant,
    name,
    list,
    tuple,
    mapping,      ///< Parts are key, value, key, value, ...
    attribute,    ///< parts[0].name
    item,         ///< parts[0][parts[1]]
    slice,        ///< parts[0][parts[1]:parts[2]:parts[3]]; missing parts are null.
    call,         ///< parts[0](parts[1], ..., words[0]=...)
    filter,       ///< parts[0]|name(parts[1], ...)
    test,         ///< parts[0] is name(parts[1], ...)
    unary,        ///< `name` is "-", "+" or "not".
    logic,        ///< `name` is "and" or "or".
    binary,       ///< `name` is + - * / // % ** or ~.
    comparison,   ///< parts[0] words[0] parts[1] words[1] parts[2] ...
    conditional,  ///< parts[1] if parts[0] else parts[2]; parts[2] may be null.
  };
  Kind kind = Kind::constant;
  int line = 1;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> parts;
  /// Names of the last arguments of a call, filter or test.
  std::vector<std::string> words;
  int depth = 1;
};

struct Statement {
  enum class Kind { text, print, branch, loop, set, set_block, macro, group, leave, next };
  Kind kind = Kind::text;
  int line = 1;
  std::string text;  ///< Text to write, or a macro's name.
  /// Names that get the value or its parts, or the parameters of a macro.
  std::vector<std::string> names;
  std::string attribute;     ///< Attribute of names[0] that `set` assigns, or empty.
  ExpressionPtr expression;  ///< Value to print, iterate or assign, or condition of a branch.
  ExpressionPtr condition;   ///< Condition of a loop's items.
  std::vector<ExpressionPtr> defaults;  ///< Defaults of a macro's last parameters.
  std::vector<Statement> body, otherwise;
};

struct Template {
  std::string what;
  std::vector<Statement> body;
};

/// Throws Error{usage}, which names `what`, the line and the construct.
Template parse_template(std::string_view source, std::string_view what);

}  // namespace vfm::text::jinja
