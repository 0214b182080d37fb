// Inside lib/text only: the values of a chat template. They do not change once made, except
// namespaces; so they are shared, not copied.
//
// A list or mapping knows its weight: one for each value in it and one for each byte of text,
// counted as often as it would be written. So the text of a value is at most `kLargest`, however
// often it repeats a part, and its depth at most `kDeepest`. Only variables hold namespaces, loops
// and functions: nothing can hold itself.
// Thread-safety: const members from any thread.
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

/// The work of a rendering so far, and its position, for messages.
struct Run {
  std::string what;  ///< the template's name
  int line = 1;
  std::size_t work = 0;

  /// Throws Error{usage}: "WHAT, line 3: ...".
  template <class... Args>
  [[noreturn]] void refuse(FormatString<Args...> pattern, Args&&... args) const {
    fail_usage("{}, line {}: {}", what, line, vfm::format(pattern, std::forward<Args>(args)...));
  }
  /// Adds work: about one for a node of the template, or for 16 bytes. Throws Error{usage}.
  void charge(std::size_t units);
  void charge_bytes(std::size_t bytes) { charge(bytes / 16 + 1); }
};

class Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;  ///< in the order in which keys came
struct Statement;
struct Scope;

struct Undefined {
  std::string name;  ///< the requested name
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
  /// These throw Error{usage} for values that are too large or deep, or may not be in a list.
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

  /// Null if the value is of another kind.
  const std::string* string() const;
  const List* list() const;
  const Dict* mapping() const;
  Space* space() const;
  const Loop* loop() const;
  const Function* function() const;
  bool is_tuple() const;
  const std::string& undefined_name() const { return std::get<Undefined>(held_).name; }

  /// A bool counts as 0 or 1. For numbers only.
  std::int64_t integer() const;
  double real() const;

  bool truth() const;
  std::size_t weight() const;
  int depth() const;
  /// Its name in messages: "a string", "undefined".
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
/// A global function, a method of `self`, or a macro with the variables that it sees.
struct Function {
  std::string name;
  Value self;
  const Statement* macro = nullptr;
  Scope* frame = nullptr;
};

const Value* find(const Dict& items, std::string_view key);
/// Python's comparison.
bool equal(const Value& a, const Value& b, Run& run);
/// The text of Python's str() and repr(); empty for undefined.
std::string to_text(const Value& value, Run& run);

}  // namespace vfm::text::jinja
