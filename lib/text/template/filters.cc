// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "text/characters.h"
#include "text/template/builtins.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace vfm::text::jinja {
namespace {

using Filter = Value (*)(const std::string& name, const Value& of, const Arguments& arguments,
                         Run& run);

Arguments rest_of(const Arguments& arguments, std::size_t count, Run& run) {
  if (!arguments.names.empty())
    run.refuse("the argument '{}' is not supported", arguments.names[0]);
  Arguments rest;
  for (std::size_t i = count; i < arguments.values.size(); ++i)
    rest.values.push_back(arguments.values[i]);
  return rest;
}

/// Returns the part of a value that a path such as "a.b.0" names.
Value part_by_path(Value value, const Value& path, Run& run) {
  if (path.is_integer()) return item_of(value, path, run);
  const std::string dot = ".";
  for (const std::string& name : split(need_string(path, "an attribute", run), &dot, -1, false)) {
    std::int64_t number = 0;
    const auto end = name.data() + name.size();
    const bool digits = !name.empty() && name.find_first_not_of("0123456789") == name.npos &&
                        std::from_chars(name.data(), end, number).ec == std::errc{};
    value = item_of(value, digits ? Value::of(number) : Value::of(name), run);
  }
  return value;
}

Value text_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  take(arguments, name, {}, 0, run);
  const std::string text = to_text(of, run);
  if (name == "upper") return Value::of(upper_case(text));
  if (name == "lower") return Value::of(lower_case(text));
  if (name == "capitalize") return Value::of(capitalized(text));
  if (name != "title") return Value::of(text);  // For "string" and "safe".
  // Words end at white space and before "-({[<". Only their first character becomes upper case.
  std::string out, word;
  const auto end = [&] {
    if (word.empty()) return;
    std::size_t first = 0;
    next_code_point(word, first);
    out += upper_case(std::string_view(word).substr(0, first));
    out += lower_case(std::string_view(word).substr(first));
    word.clear();
  };
  for (const std::string_view character : code_points(text)) {
    const bool cuts = strip(character, nullptr, true, false).empty() ||
                      std::string_view("-({[<").find(character) != std::string_view::npos;
    if (!cuts) {
      word += character;
      continue;
    }
    end();
    out += character;
  }
  end();
  return Value::of(std::move(out));
}

Value trim_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  const auto given = take(arguments, name, {"chars"}, 0, run);
  const std::string* characters =
      given[0] && !given[0]->is_none() ? &need_string(*given[0], "'trim'", run) : nullptr;
  return Value::of(strip(to_text(of, run), characters, true, true));
}

Value length_filter(const std::string& name, const Value& of, const Arguments& arguments,
                    Run& run) {
  take(arguments, name, {}, 0, run);
  std::size_t count = 0;
  if (of.string())
    count = count_code_points(*of.string());
  else if (of.list())
    count = of.list()->size();
  else if (of.mapping())
    count = of.mapping()->size();
  else if (!of.is_undefined())
    run.refuse("'{}' of {} is not supported", name, of.kind());
  if (of.string()) run.charge_bytes(of.string()->size());
  return Value::of(static_cast<std::int64_t>(count));
}

Value default_filter(const std::string& name, const Value& of, const Arguments& arguments,
                     Run& run) {
  const auto given = take(arguments, name, {"default_value", "boolean"}, 0, run);
  const bool missing = of.is_undefined() || (given[1] && given[1]->truth() && !of.truth());
  if (!missing) return of;
  return given[0] ? *given[0] : Value::of(std::string());
}

Value end_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  take(arguments, name, {}, 0, run);
  const List items = items_of(of, run);
  if (items.empty()) return Value::undefined("the " + name + " item");
  return name == "first" ? items.front() : items.back();
}

Value list_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  take(arguments, name, {}, 0, run);
  if (name == "items") {
    List pairs;
    if (of.mapping()) {
      run.charge(of.mapping()->size());
      for (const auto& [key, value] : *of.mapping())
        pairs.push_back(Value::of(List{Value::of(key), value}, run, true));
    } else if (!of.is_undefined()) {
      run.refuse("'items' of {} is not supported", of.kind());
    }
    return Value::of(std::move(pairs), run);
  }
  List items = items_of(of, run);
  if (name == "list") return Value::of(std::move(items), run);
  std::reverse(items.begin(), items.end());
  if (!of.string()) return Value::of(std::move(items), run);
  std::string text;
  for (const Value& item : items)
    text += *item.string();
  return Value::of(std::move(text));
}

Value join_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  const auto given = take(arguments, name, {"d", "attribute"}, 0, run);
  const std::string between = given[0] ? to_text(*given[0], run) : "";
  std::string text;
  bool first = true;
  for (const Value& item : items_of(of, run)) {
    if (!first) text += between;
    first = false;
    text +=
        to_text(given[1] && !given[1]->is_none() ? part_by_path(item, *given[1], run) : item, run);
    run.charge_bytes(between.size());
    if (text.size() > kLargest) run.refuse("'join' makes more than 16 MiB");
  }
  return Value::of(std::move(text));
}

Value replace_filter(const std::string& name, const Value& of, const Arguments& arguments,
                     Run& run) {
  const auto given = take(arguments, name, {"old", "new", "count"}, 2, run);
  const std::int64_t most =
      given[2] && !given[2]->is_none() ? need_integer(*given[2], "'replace'", run) : -1;
  const std::string old = to_text(*given[0], run), by = to_text(*given[1], run);
  return Value::of(replaced(to_text(of, run), old, by, most, run));
}

Value indent_filter(const std::string& name, const Value& of, const Arguments& arguments,
                    Run& run) {
  const auto given = take(arguments, name, {"width", "first", "blank"}, 0, run);
  std::string by(4, ' ');
  if (given[0] && given[0]->string())
    by = *given[0]->string();
  else if (given[0])
    by = std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                         need_integer(*given[0], "'indent'", run), 0, 1000)),
                     ' ');
  const bool blank = given[2] && given[2]->truth();
  std::string out = given[1] && given[1]->truth() ? by : "";
  const std::string text = to_text(of, run) + "\n";
  bool first = true;
  for (const std::string& line : split_lines(text)) {
    if (!first) {
      out += '\n';
      if (blank || !line.empty()) out += by;
    }
    first = false;
    out += line;
    run.charge_bytes(by.size() + line.size());
    if (out.size() > kLargest) run.refuse("'indent' makes more than 16 MiB");
  }
  return Value::of(std::move(out));
}

Value number_filter(const std::string& name, const Value& of, const Arguments& arguments,
                    Run& run) {
  if (name == "abs") {
    take(arguments, name, {}, 0, run);
    if (of.is_real()) return Value::of(std::abs(of.real()));
    const std::int64_t value = need_integer(of, "'abs'", run);
    if (value == std::numeric_limits<std::int64_t>::min()) run.refuse("'abs' is too large");
    return Value::of(std::abs(value));
  }
  const bool whole = name == "int";
  const auto given = whole ? take(arguments, name, {"default", "base"}, 0, run)
                           : take(arguments, name, {"default"}, 0, run);
  if (whole && given[1] && !equal(*given[1], Value::of(std::int64_t{10}), run))
    run.refuse("'int' with another base than 10 is not supported");
  double real = 0;
  if (of.is_number() && !of.is_real() && whole) return Value::of(of.integer());
  bool valid = of.is_number();
  if (valid) real = of.real();
  if (of.string()) {
    const std::string text = strip(*of.string(), nullptr, true, true);
    const std::size_t plus = text.starts_with("+") && text.size() > 1 && text[1] != '-' ? 1 : 0;
    const char *begin = text.data() + plus, *end = text.data() + text.size();
    std::int64_t exact = 0;
    const auto read = std::from_chars(begin, end, exact);
    if (whole && read.ec == std::errc{} && read.ptr == end) return Value::of(exact);
    const auto found = std::from_chars(begin, end, real);
    valid = found.ec == std::errc{} && found.ptr == end;
  }
  const bool fits = std::isfinite(real) && std::abs(real) < 9e18;
  if (!valid || (whole && !fits)) {
    if (given[0]) return *given[0];
    return whole ? Value::of(std::int64_t{0}) : Value::of(0.0);
  }
  return whole ? Value::of(static_cast<std::int64_t>(real)) : Value::of(real);
}

Value map_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  List out;
  const bool by_attribute = arguments.plain() == 0;
  if (by_attribute) {
    const auto given = take(arguments, name, {"attribute", "default"}, 1, run);
    for (const Value& item : items_of(of, run)) {
      Value part = part_by_path(item, *given[0], run);
      out.push_back(part.is_undefined() && given[1] ? *given[1] : std::move(part));
    }
  } else {
    const std::string& filter = need_string(arguments.values[0], "'map'", run);
    const Arguments rest = rest_of(arguments, 1, run);
    for (const Value& item : items_of(of, run))
      out.push_back(apply_filter(filter, item, rest, run));
  }
  return Value::of(std::move(out), run);
}

Value select_filter(const std::string& name, const Value& of, const Arguments& arguments,
                    Run& run) {
  const bool attribute = name.ends_with("attr"), wanted = name.starts_with("select");
  const std::size_t before = attribute ? 1 : 0;
  if (arguments.plain() < before) run.refuse("'{}' needs an attribute", name);
  const bool by_test = arguments.plain() > before;
  const std::string test =
      by_test ? need_string(arguments.values[before], "'" + name + "'", run) : "";
  const Arguments rest = rest_of(arguments, before + (by_test ? 1 : 0), run);
  List out;
  for (const Value& item : items_of(of, run)) {
    const Value looked = attribute ? part_by_path(item, arguments.values[0], run) : item;
    const bool holds = by_test ? test_holds(test, looked, rest, run) : looked.truth();
    if (holds == wanted) out.push_back(item);
  }
  return Value::of(std::move(out), run);
}

Value json_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  const auto given =
      take(arguments, name, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, run);
  JsonStyle style;
  style.ensure_ascii = given[0] && given[0]->truth();
  style.sort_keys = given[3] && given[3]->truth();
  if (given[1] && given[1]->string())
    style.indent = *given[1]->string();
  else if (given[1] && !given[1]->is_none())
    style.indent = std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                   need_integer(*given[1], "'tojson'", run), 0, 100)),
                               ' ');
  style.between = style.indent ? "," : ", ";
  if (given[2] && !given[2]->is_none()) {
    const List parts = items_of(*given[2], run);
    if (parts.size() != 2) run.refuse("'separators' of 'tojson' are two strings");
    style.between = need_string(parts[0], "'tojson'", run);
    style.after_key = need_string(parts[1], "'tojson'", run);
  }
  return Value::of(to_json_text(of, style, run));
}

struct Named {
  std::string_view name;
  Filter filter;
};
constexpr Named kFilters[] = {
    {"abs", number_filter},      {"capitalize", text_filter},   {"count", length_filter},
    {"d", default_filter},       {"default", default_filter},   {"first", end_filter},
    {"float", number_filter},    {"indent", indent_filter},     {"int", number_filter},
    {"items", list_filter},      {"join", join_filter},         {"last", end_filter},
    {"length", length_filter},   {"list", list_filter},         {"lower", text_filter},
    {"map", map_filter},         {"reject", select_filter},     {"rejectattr", select_filter},
    {"replace", replace_filter}, {"reverse", list_filter},      {"safe", text_filter},
    {"select", select_filter},   {"selectattr", select_filter}, {"string", text_filter},
    {"title", text_filter},      {"tojson", json_filter},       {"trim", trim_filter},
    {"upper", text_filter}};

}  // namespace

std::vector<const Value*> take(const Arguments& arguments, std::string_view of,
                               std::initializer_list<std::string_view> parameters,
                               std::size_t least, Run& run) {
  std::vector<const Value*> given(parameters.size());
  for (std::size_t i = 0; i < arguments.values.size(); ++i) {
    std::size_t place = i;
    if (i >= arguments.plain()) {
      const std::string& name = arguments.names[i - arguments.plain()];
      const auto found = std::find(parameters.begin(), parameters.end(), name);
      if (found == parameters.end())
        run.refuse("the argument '{}' of '{}' is not supported", name, of);
      place = static_cast<std::size_t>(found - parameters.begin());
    }
    if (place >= given.size()) run.refuse("'{}' has {} arguments at most", of, given.size());
    if (given[place]) run.refuse("'{}' is given an argument twice", of);
    given[place] = &arguments.values[i];
  }
  for (std::size_t i = 0; i < least; ++i)
    if (!given[i]) run.refuse("'{}' needs {} arguments", of, least);
  return given;
}

Value apply_filter(const std::string& name, const Value& of, const Arguments& arguments, Run& run) {
  run.charge(1);
  for (const Named& filter : kFilters)
    if (filter.name == name) return filter.filter(name, of, arguments, run);
  run.refuse("the filter '{}' is not supported", name);
}

}  // namespace vfm::text::jinja
