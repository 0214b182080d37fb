// The tests after "is".
// SPDX-License-Identifier: Apache-2.0
#include "text/template/builtins.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace vfm::text::jinja {
namespace {

/// Returns nothing if `name` is not a test that compares two values.
std::optional<bool> compares(std::string_view name, const Value& of, const Arguments& arguments,
                             Run& run) {
  const auto other = [&]() -> const Value& { return *take(arguments, name, {"other"}, 1, run)[0]; };
  if (name == "eq" || name == "equalto") return equal(of, other(), run);
  if (name == "ne") return !equal(of, other(), run);
  if (name == "lt" || name == "lessthan") return compare(of, other(), run) < 0;
  if (name == "le") return compare(of, other(), run) <= 0;
  if (name == "gt" || name == "greaterthan") return compare(of, other(), run) > 0;
  if (name == "ge") return compare(of, other(), run) >= 0;
  if (name == "in") return contains(other(), of, run);
  if (name == "sameas") {
    // Only None and booleans are always the same object in Python.
    const Value& same = other();
    if (!same.is_none() && !same.is_bool()) run.refuse("'sameas' {} is not supported", same.kind());
    return of.is_none() == same.is_none() && of.is_bool() == same.is_bool() &&
           of.truth() == same.truth();
  }
  if (name == "divisibleby") {
    const std::int64_t by = need_integer(other(), "'divisibleby'", run);
    if (by == 0) run.refuse("'divisibleby' 0");
    return by == -1 || need_integer(of, "'divisibleby'", run) % by == 0;
  }
  return std::nullopt;
}

bool in_case(const Value& of, bool upper, Run& run) {
  const std::string text = to_text(of, run), up = upper_case(text), low = lower_case(text);
  return up != low && text == (upper ? up : low);
}

}  // namespace

bool test_holds(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  run.charge(1);
  if (const auto holds = compares(name, of, arguments, run)) return *holds;
  take(arguments, name, {}, 0, run);
  const bool container = of.string() || of.list() || of.mapping();
  if (name == "defined") return !of.is_undefined();
  if (name == "undefined") return of.is_undefined();
  if (name == "none") return of.is_none();
  if (name == "boolean") return of.is_bool();
  if (name == "true") return of.is_bool() && of.truth();
  if (name == "false") return of.is_bool() && !of.truth();
  if (name == "string") return of.string() != nullptr;
  if (name == "mapping") return of.mapping() != nullptr;
  if (name == "sequence" || name == "iterable") return container || of.is_undefined();
  if (name == "number") return of.is_number();
  if (name == "integer") return of.is_integer();
  if (name == "float") return of.is_real();
  if (name == "odd") return need_integer(of, "'odd'", run) % 2 != 0;
  if (name == "even") return need_integer(of, "'even'", run) % 2 == 0;
  if (name == "upper" || name == "lower") return in_case(of, name == "upper", run);
  run.refuse("the test '{}' is not supported", name);
}

}  // namespace vfm::text::jinja
