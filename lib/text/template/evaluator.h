// Runs the tree of a chat template. Only for lib/text. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "text/template/builtins.h"
#include "text/template/syntax.h"

namespace vfm::text::jinja {

/// Variables, and the outer scope. Each item of a loop and each call of a macro has a scope of its
/// own.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, Value, std::less<>> names{};
};

class Evaluator {
 public:
  explicit Evaluator(Run& run) : run_(run) {}
  /// Returns the template's output. Throws Error{usage}.
  std::string render(const Template& of, Scope& variables);

 private:
  /// The next action after a statement in a loop.
  enum class Flow { on, leave, next };

  /// Limits the nesting, for example of macros that call macros.
  class Depth {
   public:
    explicit Depth(Evaluator& of);
    ~Depth() { --of_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Evaluator& of_;
  };

  Flow run(const std::vector<Statement>& body, Scope& frame, std::string& out);
  Flow run(const Statement& one, Scope& frame, std::string& out);
  Flow loop(const Statement& one, Scope& frame, std::string& out);
  void assign(const Statement& one, const Value& value, Scope& frame);
  void unpack(const std::vector<std::string>& names, const Value& value, Scope& frame);
  void write(std::string& out, std::string_view text);

  Value value(const Expression& of, Scope& frame);
  Value name(const Expression& of, Scope& frame);
  Value container(const Expression& of, Scope& frame);
  Value part(const Expression& of, Scope& frame);
  Value call(const Expression& of, Scope& frame);
  Value call_macro(const Function& function, const Arguments& arguments);
  Value operation(const Expression& of, Scope& frame);
  bool comparison(const Expression& of, Scope& frame);
  Arguments arguments(const Expression& of, Scope& frame);

  Run& run_;
  int depth_ = 0;
};

}  // namespace vfm::text::jinja
