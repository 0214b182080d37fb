// SPDX-License-Identifier: Apache-2.0
#include "text/template/evaluator.h"

#include "text/template/arithmetic.h"

namespace vfm::text::jinja {
namespace {

constexpr int kDeepestRun = 1000;
using Kind = Expression::Kind;

const Value* look_up(const Scope& frame, std::string_view name) {
  for (const Scope* at = &frame; at != nullptr; at = at->outer)
    if (const auto found = at->names.find(name); found != at->names.end()) return &found->second;
  return nullptr;
}

}  // namespace

Evaluator::Depth::Depth(Evaluator& of) : of_(of) {
  if (of.depth_ >= kDeepestRun) of.run_.refuse("the template calls itself too often");
  ++of.depth_;
}

std::string Evaluator::render(const Template& of, Scope& variables) {
  std::string out;
  run(of.body, variables, out);
  return out;
}

void Evaluator::write(std::string& out, std::string_view text) {
  run_.charge_bytes(text.size());
  if (out.size() + text.size() > kLargest) run_.refuse("the template writes more than 16 MiB");
  out += text;
}

Evaluator::Flow Evaluator::run(const std::vector<Statement>& body, Scope& frame, std::string& out) {
  for (const Statement& one : body)
    if (const Flow flow = run(one, frame, out); flow != Flow::on) return flow;
  return Flow::on;
}

Evaluator::Flow Evaluator::run(const Statement& one, Scope& frame, std::string& out) {
  const Depth depth(*this);
  run_.line = one.line;
  run_.charge(1);
  switch (one.kind) {
    case Statement::Kind::text:
      write(out, one.text);
      return Flow::on;
    case Statement::Kind::print:
      write(out, to_text(value(*one.expression, frame), run_));
      return Flow::on;
    case Statement::Kind::branch:
      return run(value(*one.expression, frame).truth() ? one.body : one.otherwise, frame, out);
    case Statement::Kind::loop:
      return loop(one, frame, out);
    case Statement::Kind::set:
      assign(one, value(*one.expression, frame), frame);
      return Flow::on;
    case Statement::Kind::set_block: {
      std::string text;
      Scope inner{&frame};
      run(one.body, inner, text);
      assign(one, Value::of(std::move(text)), frame);
      return Flow::on;
    }
    case Statement::Kind::macro:
      frame.names.insert_or_assign(one.text, Value::of(Function{one.text, {}, &one, &frame}));
      return Flow::on;
    case Statement::Kind::group: {
      Scope inner{&frame};
      return run(one.body, inner, out);
    }
    case Statement::Kind::leave:
      return Flow::leave;
    case Statement::Kind::next:
      return Flow::next;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::loop(const Statement& one, Scope& frame, std::string& out) {
  const Value over = value(*one.expression, frame);
  const auto items = std::make_shared<Sequence>();
  for (Value& item : items_of(over, run_)) {
    if (one.condition) {
      Scope inner{&frame};
      unpack(one.names, item, inner);
      if (!value(*one.condition, inner).truth()) continue;
    }
    items->items.push_back(std::move(item));
  }
  if (items->items.empty()) {
    Scope inner{&frame};
    return run(one.otherwise, inner, out);
  }
  const auto state = std::make_shared<Loop>(Loop{items});
  for (; state->place < items->items.size(); ++state->place) {
    run_.line = one.line;
    Scope inner{&frame};
    inner.names.emplace("loop", Value::of(state));
    unpack(one.names, items->items[state->place], inner);
    if (run(one.body, inner, out) == Flow::leave) break;
  }
  return Flow::on;
}

void Evaluator::unpack(const std::vector<std::string>& names, const Value& from, Scope& frame) {
  if (names.size() == 1) {
    frame.names.insert_or_assign(names[0], from);
    return;
  }
  const List parts = items_of(from, run_);
  if (parts.size() != names.size())
    run_.refuse("{} with {} parts for {} names", from.kind(), parts.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    frame.names.insert_or_assign(names[i], parts[i]);
}

void Evaluator::assign(const Statement& one, const Value& to, Scope& frame) {
  if (one.attribute.empty()) {
    unpack(one.names, to, frame);
    return;
  }
  const Value* space = look_up(frame, one.names[0]);
  if (space == nullptr || space->space() == nullptr)
    run_.refuse("'{}' is not a namespace, so '{}.{}' cannot be set", one.names[0], one.names[0],
                one.attribute);
  Value::of(List{to}, run_);  // Refuses values that a namespace must not hold.
  space->space()->items.insert_or_assign(one.attribute, to);
}

Value Evaluator::value(const Expression& of, Scope& frame) {
  const Depth depth(*this);
  run_.charge(1);
  switch (of.kind) {
    case Kind::constant:
      return of.value;
    case Kind::name:
      return name(of, frame);
    case Kind::list:
    case Kind::tuple:
    case Kind::mapping:
      return container(of, frame);
    case Kind::attribute:
    case Kind::item:
    case Kind::slice:
      return part(of, frame);
    case Kind::call:
      return call(of, frame);
    case Kind::filter: {
      const Value self = value(*of.parts[0], frame);
      const Arguments given = arguments(of, frame);
      run_.line = of.line;
      return apply_filter(of.name, self, given, run_);
    }
    case Kind::test: {
      const Value self = value(*of.parts[0], frame);
      const Arguments given = arguments(of, frame);
      run_.line = of.line;
      return Value::of(test_holds(of.name, self, given, run_));
    }
    case Kind::conditional: {
      const bool holds = value(*of.parts[0], frame).truth();
      if (!holds && !of.parts[2]) return Value::undefined("the other value");
      return value(*of.parts[holds ? 1 : 2], frame);
    }
    default:
      return operation(of, frame);
  }
}

Value Evaluator::name(const Expression& of, Scope& frame) {
  if (const Value* found = look_up(frame, of.name)) return *found;
  if (is_global(of.name)) return Value::of(Function{of.name, {}});
  return Value::undefined(of.name);
}

Value Evaluator::container(const Expression& of, Scope& frame) {
  if (of.kind == Kind::mapping) {
    Dict items;
    for (std::size_t i = 0; i < of.parts.size(); i += 2) {
      const Value key = value(*of.parts[i], frame);
      Value item = value(*of.parts[i + 1], frame);
      run_.line = of.line;
      const std::string& text = need_string(key, "a key", run_);
      run_.charge(items.size());
      if (const Value* same = find(items, text))
        *const_cast<Value*>(same) = std::move(item);
      else
        items.emplace_back(text, std::move(item));
    }
    return Value::of(std::move(items), run_);
  }
  List items;
  for (const ExpressionPtr& item : of.parts)
    items.push_back(value(*item, frame));
  run_.line = of.line;
  return Value::of(std::move(items), run_, of.kind == Kind::tuple);
}

Value Evaluator::part(const Expression& of, Scope& frame) {
  const Value self = value(*of.parts[0], frame);
  if (of.kind == Kind::attribute) {
    run_.line = of.line;
    return attribute_of(self, of.name, run_);
  }
  List at;
  for (std::size_t i = 1; i < of.parts.size(); ++i)
    at.push_back(of.parts[i] ? value(*of.parts[i], frame) : Value::none());
  run_.line = of.line;
  if (of.kind == Kind::item) return item_of(self, at[0], run_);
  return slice_of(self, &at[0], &at[1], &at[2], run_);
}

Arguments Evaluator::arguments(const Expression& of, Scope& frame) {
  Arguments given;
  for (std::size_t i = 1; i < of.parts.size(); ++i)
    given.values.push_back(value(*of.parts[i], frame));
  given.names = of.words;
  return given;
}

Value Evaluator::call(const Expression& of, Scope& frame) {
  const Value callee = value(*of.parts[0], frame);
  const Arguments given = arguments(of, frame);
  run_.line = of.line;
  const Function* function = callee.function();
  if (function == nullptr) {
    if (callee.is_undefined())
      run_.refuse("the function '{}' is not supported", callee.undefined_name());
    run_.refuse("{} cannot be called", callee.kind());
  }
  if (function->macro) return call_macro(*function, given);
  if (!function->self.is_undefined()) return call_method(*function, given, run_);
  if (auto result = call_global(function->name, given, run_)) return *result;
  run_.refuse("the function '{}' is not supported", function->name);
}

Value Evaluator::call_macro(const Function& function, const Arguments& given) {
  const Statement& macro = *function.macro;
  Scope inner{function.frame};
  const std::size_t names = macro.names.size(), required = names - macro.defaults.size();
  if (given.plain() > names) run_.refuse("the macro '{}' has {} parameters", macro.text, names);
  for (std::size_t i = 0; i < given.plain(); ++i)
    inner.names.emplace(macro.names[i], given.values[i]);
  for (std::size_t i = 0; i < given.names.size(); ++i) {
    bool known = false;
    for (const std::string& parameter : macro.names)
      known = known || parameter == given.names[i];
    if (!known || !inner.names.emplace(given.names[i], given.values[given.plain() + i]).second)
      run_.refuse("the macro '{}' cannot take '{}'", macro.text, given.names[i]);
  }
  for (std::size_t i = 0; i < names; ++i) {
    if (inner.names.contains(macro.names[i])) continue;
    inner.names.emplace(macro.names[i], i < required ? Value::undefined(macro.names[i])
                                                     : value(*macro.defaults[i - required], inner));
  }
  std::string text;
  run(macro.body, inner, text);
  return Value::of(std::move(text));
}

Value Evaluator::operation(const Expression& of, Scope& frame) {
  if (of.kind == Kind::comparison) return Value::of(comparison(of, frame));
  const Value first = value(*of.parts[0], frame);
  if (of.kind == Kind::unary) {
    run_.line = of.line;
    return of.name == "not" ? Value::of(!first.truth()) : compute(of.name, first, run_);
  }
  if (of.kind == Kind::logic)
    return first.truth() == (of.name == "or") ? first : value(*of.parts[1], frame);
  if (of.name == "~") {
    std::string text;
    write(text, to_text(first, run_));
    for (std::size_t i = 1; i < of.parts.size(); ++i)
      write(text, to_text(value(*of.parts[i], frame), run_));
    return Value::of(std::move(text));
  }
  const Value second = value(*of.parts[1], frame);
  run_.line = of.line;
  return compute(of.name, first, second, run_);
}

bool Evaluator::comparison(const Expression& of, Scope& frame) {
  Value left = value(*of.parts[0], frame);
  for (std::size_t i = 0; i < of.words.size(); ++i) {
    Value right = value(*of.parts[i + 1], frame);
    run_.line = of.line;
    const std::string& how = of.words[i];
    bool holds = false;
    if (how == "==" || how == "!=")
      holds = equal(left, right, run_) == (how == "==");
    else if (how == "in" || how == "not in")
      holds = contains(right, left, run_) == (how == "in");
    else if (how == "<" || how == "<=")
      holds = how == "<" ? compare(left, right, run_) < 0 : compare(left, right, run_) <= 0;
    else
      holds = how == ">" ? compare(left, right, run_) > 0 : compare(left, right, run_) >= 0;
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

}  // namespace vfm::text::jinja
