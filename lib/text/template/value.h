// The values of a chat template. Values are immutable, except namespaces. Only for lib/text.
//
// A list or mapping has a weight: the number of its values and bytes of text, each counted as often
// as it would be written. A value has at most the weight `kLargest` and the depth `kDeepest`. Only
// variables hold namespaces, loops and functions, so that no value contains itself. Thread-safety:
// const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"

namespace vfm::text::jinja {

inline constexpr std::size_t kLargest = std::size_t{16} << 20;
inline constexpr int kDeepest = 100;

/// The work that a rendering has done, and its position in the template.
struct Run {
  std::string what;  ///< Name of the template.
  int line = 1;
  std::size_t work = 0;

  /// Throws Error{usage} "WHAT, line 3: ...".
  template <class... Args>
  [[noreturn]] void refuse(FormatString<Args...> pattern, Args&&... args) const {
    fail_usage("{}, line {}: {}", what, line, vfm::format(pattern, std::forward<Args>(args)...));
  }
  /// Adds work, about one unit for a node of the template, or for 16 bytes. Throws Error{usage}
  /// above the limit.
  void charge(std::size_t units);
  void charge_bytes(std::size_t bytes) { charge(bytes / 16 + 1); }
};

class Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;  ///< Pairs in the order of insertion.
struct Statement;
struct Scope;

struct Undefined {
  std::string name;  ///< The requested name.
};
struct None {};
struct Sequence;
struct Mapping;
struct Space;
struct Loop;
struct Function;

class Value {
 public:
  Value() = default;
  static Value undefined(std::string name);
  static Value none() { return Value(Held(None{})); }
  static Value of(bool value) { return Value(Held(value)); }
  static Value of(std::int64_t value) { return Value(Held(value)); }
  static Value of(double value) { return Value(Held(value)); }
  static Value of(std::string text);
  /// Make a list or mapping. Throw Error{usage} if the value would be too large or deep, or if an
  /// item may not be in a list.
  static Value of(List items, const Run& run, bool tuple = false);
  static Value of(Dict items, const Run& run);
  static Value of(const Json& json, const Run& run);
  static Value of(std::shared_ptr<Space> space) { return Value(Held(std::move(space))); }
  static Value of(std::shared_ptr<Loop> loop) { return Value(Held(std::move(loop))); }
  static Value of(Function function);

  bool is_undefined() const { return std::holds_alternative<Undefined>(held_); }
  bool is_none() const { return std::holds_alternative<None>(held_); }
  bool is_bool() const { return std::holds_alternative<bool>(held_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(held_); }
  bool is_real() const { return std::holds_alternative<double>(held_); }
  bool is_number() const { return is_bool() || is_integer() || is_real(); }

  /// Return null if the value is of another kind.
  const std::string* string() const;
  const List* list() const;
  const Dict* mapping() const;
  Space* space() const;
  const Loop* loop() const;
  const Function* function() const;
  bool is_tuple() const;
  const std::string& undefined_name() const { return std::get<Undefined>(held_).name; }

  /// Return the number, or 0 or 1 for a bool. The value must be a number.
  std::int64_t integer() const;
  double real() const;

  bool truth() const;
  std::size_t weight() const;
  int depth() const;
  /// Returns the name of the kind in messages, such as "a string" or "undefined".
  std::string kind() const;

 private:
  using Held =
      std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Mapping>,
                   std::shared_ptr<Space>, std::shared_ptr<Loop>, std::shared_ptr<const Function>>;
  explicit Value(Held held) : held_(std::move(held)) {}
  Held held_;
};

struct Sequence {
  List items;
  bool tuple = false;
  std::size_t weight = 1;
  int depth = 1;
};
struct Mapping {
  Dict items;
  std::size_t weight = 1;
  int depth = 1;
};
struct Space {
  std::map<std::string, Value, std::less<>> items;
};
struct Loop {
  std::shared_ptr<const Sequence> items;
  std::size_t place = 0;
};
/// A global function, a method of `self`, or a macro with its visible variables.
struct Function {
  std::string name;
  Value self;
  const Statement* macro = nullptr;
  Scope* frame = nullptr;
};

const Value* find(const Dict& items, std::string_view key);
/// Returns the result of Python's comparison.
bool equal(const Value& a, const Value& b, Run& run);
/// Return the text of Python's str() and repr(). An undefined value gives an empty text.
std::string to_text(const Value& value, Run& run);

}  // namespace vfm::text::jinja
