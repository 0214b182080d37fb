// The names that a chat template can use, with the meaning of Jinja and Python. Other names and
// unsupported arguments are refused, and the error names them. Only for lib/text.
//
// Filters: abs capitalize count d default first float indent int items join last length list lower
//   map reject rejectattr replace reverse safe select selectattr string title tojson trim upper
// Tests: boolean defined divisibleby eq equalto even false float ge greaterthan gt in integer
//   iterable le lessthan lt lower mapping ne none number odd sameas sequence string true undefined
//   upper
// Methods of strings: capitalize count endswith find isdigit isspace join lower lstrip removeprefix
//   removesuffix replace rfind rsplit rstrip split splitlines startswith strip title upper
// Methods of mappings: get items keys values
// Functions: dict namespace raise_exception range
// Thread-safety: any thread, but a Run is used by one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace vfm::text::jinja {

struct Arguments {
  List values;
  std::vector<std::string> names;  ///< Names of the last values.

  std::size_t plain() const { return values.size() - names.size(); }
};

/// Returns the argument of each parameter, or null if the argument is missing. Throws Error{usage},
/// which names `of`, for extra arguments, and for fewer than `least` arguments.
std::vector<const Value*> take(const Arguments& arguments, std::string_view of,
                               std::initializer_list<std::string_view> parameters,
                               std::size_t least, Run& run);

Value apply_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run);
bool test_holds(const std::string& name, const Value& of, const Arguments& arguments, Run& run);
Value call_method(const Function& method, const Arguments& arguments, Run& run);
/// Returns nullopt if no function has the name.
std::optional<Value> call_global(const std::string& name, const Arguments& arguments, Run& run);
bool is_global(std::string_view name);

/// Return `of.name` and `of[key]`, or undefined if missing.
Value attribute_of(const Value& of, const std::string& name, Run& run);
Value item_of(const Value& of, const Value& key, Run& run);
/// Returns `of[begin:end:step]`. Null means a missing argument.
Value slice_of(const Value& of, const Value* begin, const Value* end, const Value* step, Run& run);

/// Returns the items of a loop over a value: items, characters or keys.
List items_of(const Value& value, Run& run);
bool contains(const Value& container, const Value& value, Run& run);
/// Returns a number below, equal to or above 0, by Python's order of numbers and strings. Throws
/// Error{usage} for other kinds.
int compare(const Value& a, const Value& b, Run& run);

/// Return the string or integer that `of` needs. Throw Error{usage} for other kinds.
const std::string& need_string(const Value& value, std::string_view of, Run& run);
std::int64_t need_integer(const Value& value, std::string_view of, Run& run);

}  // namespace vfm::text::jinja
