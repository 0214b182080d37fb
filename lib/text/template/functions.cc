// Methods of strings and mappings, and the functions that every template has.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/characters.h"
#include "text/template/builtins.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace vfm::text::jinja {
namespace {

constexpr std::int64_t kLongestRange = 100'000;  // As in Jinja's sandbox.

Value list_of(std::vector<std::string> parts, Run& run) {
  List items;
  for (std::string& part : parts)
    items.push_back(Value::of(std::move(part)));
  run.charge(items.size());
  return Value::of(std::move(items), run);
}

/// Converts an offset in bytes to code points, and npos to -1.
Value position(std::string_view text, std::size_t at) {
  if (at == text.npos) return Value::of(std::int64_t{-1});
  return Value::of(static_cast<std::int64_t>(count_code_points(text.substr(0, at))));
}

bool begins_or_ends(const std::string& text, const Value& with, bool begins, Run& run) {
  if (with.is_tuple()) {
    for (const Value& one : *with.list())
      if (begins_or_ends(text, one, begins, run)) return true;
    return false;
  }
  const std::string& part = need_string(with, begins ? "'startswith'" : "'endswith'", run);
  return begins ? text.starts_with(part) : text.ends_with(part);
}

std::int64_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return static_cast<std::int64_t>(count_code_points(text)) + 1;
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size())
    ++count;
  return count;
}

bool all_of(const std::string& text, bool digits) {
  if (text.empty()) return false;
  if (!digits) return strip(text, nullptr, true, false).empty();
  return text.find_first_not_of("0123456789") == text.npos;
}

/// Calls a method with no argument or one string.
std::optional<Value> simple_method(const std::string& name, const std::string& text,
                                   const Arguments& arguments, Run& run) {
  const auto none = [&] { take(arguments, name, {}, 0, run); };
  const auto part = [&]() -> const Value& { return *take(arguments, name, {"of"}, 1, run)[0]; };
  const auto string = [&]() -> const std::string& {
    return need_string(part(), "'" + name + "'", run);
  };
  if (name == "upper") return none(), Value::of(upper_case(text));
  if (name == "lower") return none(), Value::of(lower_case(text));
  if (name == "capitalize") return none(), Value::of(capitalized(text));
  if (name == "title") return none(), Value::of(title_case(text));
  if (name == "isdigit" || name == "isspace")
    return none(), Value::of(all_of(text, name == "isdigit"));
  if (name == "splitlines") return none(), list_of(split_lines(text), run);
  if (name == "startswith" || name == "endswith")
    return Value::of(begins_or_ends(text, part(), name == "startswith", run));
  if (name == "find") return position(text, text.find(string()));
  if (name == "rfind") return position(text, text.rfind(string()));
  if (name == "count") return Value::of(count_of(text, string()));
  if (name == "removeprefix")
    return Value::of(text.starts_with(string()) ? text.substr(string().size()) : text);
  if (name == "removesuffix")
    return Value::of(text.ends_with(string()) ? text.substr(0, text.size() - string().size())
                                              : text);
  return std::nullopt;
}

Value join_method(const std::string& between, const Arguments& arguments, Run& run) {
  std::string text;
  bool first = true;
  for (const Value& item : items_of(*take(arguments, "join", {"of"}, 1, run)[0], run)) {
    if (!first) text += between;
    first = false;
    text += need_string(item, "'join'", run);
    run.charge_bytes(between.size() + item.string()->size());
    if (text.size() > kLargest) run.refuse("'join' makes more than 16 MiB");
  }
  return Value::of(std::move(text));
}

Value string_method(const std::string& name, const std::string& text, const Arguments& arguments,
                    Run& run) {
  run.charge_bytes(text.size());
  if (const auto value = simple_method(name, text, arguments, run)) return *value;
  const auto optional_string = [&](const Value* value) {
    return value && !value->is_none() ? &need_string(*value, "'" + name + "'", run) : nullptr;
  };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const std::string* of = optional_string(take(arguments, name, {"chars"}, 0, run)[0]);
    return Value::of(strip(text, of, name != "rstrip", name != "lstrip"));
  }
  if (name == "split" || name == "rsplit") {
    const auto given = take(arguments, name, {"sep", "maxsplit"}, 0, run);
    const std::string* separator = optional_string(given[0]);
    if (separator && separator->empty()) run.refuse("'{}' at an empty string", name);
    const std::int64_t most = given[1] ? need_integer(*given[1], "'split'", run) : -1;
    return list_of(split(text, separator, most, name == "rsplit"), run);
  }
  if (name == "replace") {
    const auto given = take(arguments, name, {"old", "new", "count"}, 2, run);
    const std::int64_t most = given[2] ? need_integer(*given[2], "'replace'", run) : -1;
    return Value::of(replaced(text, need_string(*given[0], "'replace'", run),
                              need_string(*given[1], "'replace'", run), most, run));
  }
  if (name == "join") return join_method(text, arguments, run);
  run.refuse("the method '{}' of a string is not supported", name);
}

Value mapping_method(const std::string& name, const Value& of, const Arguments& arguments,
                     Run& run) {
  const Dict& items = *of.mapping();
  run.charge(items.size());
  if (name == "get") {
    const auto given = take(arguments, name, {"key", "default"}, 1, run);
    const Value* value = given[0]->string() ? find(items, *given[0]->string()) : nullptr;
    if (value) return *value;
    return given[1] ? *given[1] : Value::none();
  }
  if (name == "items") return apply_filter("items", of, arguments, run);
  if (name == "keys") return apply_filter("list", of, arguments, run);
  if (name == "values") {
    take(arguments, name, {}, 0, run);
    List values;
    for (const auto& [key, value] : items)
      values.push_back(value);
    return Value::of(std::move(values), run);
  }
  run.refuse("the method '{}' of a mapping is not supported", name);
}

Dict named_values(const std::string& name, const Arguments& arguments, Run& run) {
  Dict items;
  if (arguments.plain() > 1) run.refuse("'{}' has one argument without a name at most", name);
  if (arguments.plain() == 1) {
    if (!arguments.values[0].mapping())
      run.refuse("'{}' of {} is not supported", name, arguments.values[0].kind());
    items = *arguments.values[0].mapping();
  }
  for (std::size_t i = 0; i < arguments.names.size(); ++i) {
    const Value& value = arguments.values[arguments.plain() + i];
    const auto same = std::find_if(items.begin(), items.end(), [&](const auto& item) {
      return item.first == arguments.names[i];
    });
    if (same != items.end())
      same->second = value;
    else
      items.emplace_back(arguments.names[i], value);
  }
  return items;
}

Value range(const Arguments& arguments, Run& run) {
  const auto given = take(arguments, "range", {"start", "stop", "step"}, 1, run);
  const auto number = [&](std::size_t i, std::int64_t otherwise) {
    return given[i] ? need_integer(*given[i], "'range'", run) : otherwise;
  };
  const std::int64_t begin = given[1] ? number(0, 0) : 0, end = number(given[1] ? 1 : 0, 0),
                     step = number(2, 1);
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  const auto far = [](std::int64_t value) { return value < -kFar || value > kFar; };
  if (step == 0 || far(begin) || far(end) || far(step))
    run.refuse("'range' from {} to {} by {}", begin, end, step);
  List items;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    if (static_cast<std::int64_t>(items.size()) == kLongestRange)
      run.refuse("a range of more than {} numbers", kLongestRange);
    items.push_back(Value::of(i));
  }
  run.charge(items.size());
  return Value::of(std::move(items), run);
}

}  // namespace

Value call_method(const Function& method, const Arguments& arguments, Run& run) {
  const Value& self = method.self;
  if (self.string()) return string_method(method.name, *self.string(), arguments, run);
  if (self.mapping()) return mapping_method(method.name, self, arguments, run);
  if (const Loop* loop = self.loop()) {
    if (arguments.values.empty()) run.refuse("'cycle' needs something to go through");
    return arguments.values[loop->place % arguments.values.size()];
  }
  run.refuse("the method '{}' of {} is not supported", method.name, self.kind());
}

bool is_global(std::string_view name) {
  return name == "namespace" || name == "range" || name == "dict" || name == "raise_exception";
}

std::optional<Value> call_global(const std::string& name, const Arguments& arguments, Run& run) {
  run.charge(1);
  if (name == "range") return range(arguments, run);
  if (name == "dict") return Value::of(named_values(name, arguments, run), run);
  if (name == "namespace") {
    const Dict items = named_values(name, arguments, run);
    Value::of(items, run);  // Refuses values that a namespace must not hold.
    const auto space = std::make_shared<Space>();
    for (const auto& [key, value] : items) {
      if (key.starts_with('_')) run.refuse("the attribute '{}' is not supported", key);
      space->items.insert_or_assign(key, value);
    }
    return Value::of(space);
  }
  if (name == "raise_exception") {
    const auto given = take(arguments, name, {"message"}, 1, run);
    run.refuse("the template refuses the conversation: {}", to_text(*given[0], run));
  }
  return std::nullopt;
}

}  // namespace vfm::text::jinja
