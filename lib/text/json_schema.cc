// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/json.h"
#include "text/mend_json.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr std::string_view kTypes[] = {"null",   "boolean", "integer", "number",
                                       "string", "array",   "object"};
constexpr std::string_view kBounds[] = {"minimum", "maximum", "exclusiveMinimum",
                                        "exclusiveMaximum"};
constexpr std::string_view kCounts[] = {"minLength", "maxLength", "minItems", "maxItems"};
constexpr std::string_view kNotes[] = {"$schema",     "$comment", "title",
                                       "description", "default",  "examples"};
constexpr std::size_t kShownValue = 60;  // In characters.

template <std::size_t N>
bool is_among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void check_schema(const Json& schema, const std::string& at, std::string_view what);

void check_types(const Json& value, const std::string& at, std::string_view what) {
  const Json types = value.is_array() ? value : Json::array({value});
  if (types.empty()) fail_usage("{}: \"type\" at {} names no type", what, at);
  for (const Json& type : types)
    if (!type.is_string() || !is_among(kTypes, type.get<std::string>()))
      fail_usage(
          "{}: \"type\" at {} is {}; there are null, boolean, integer, number, string, array "
          "and object",
          what, at, dump_json(type));
}

void check_names(const Json& value, const std::string& at, std::string_view what) {
  const bool texts = value.is_array() && std::all_of(value.begin(), value.end(),
                                                     [](const Json& v) { return v.is_string(); });
  if (!texts) fail_usage("{}: \"required\" at {} is not a list of names", what, at);
}

void check_keyword(const std::string& name, const Json& value, const std::string& at,
                   std::string_view what) {
  if (is_among(kNotes, name)) return;
  if (name == "type") return check_types(value, at, what);
  if (name == "required") return check_names(value, at, what);
  if (name == "enum") {
    if (!value.is_array() || value.empty())
      fail_usage("{}: \"enum\" at {} is not a list of values", what, at);
  } else if (is_among(kBounds, name)) {
    if (!value.is_number()) fail_usage("{}: \"{}\" at {} is not a number", what, name, at);
  } else if (is_among(kCounts, name)) {
    if (!value.is_number_unsigned()) fail_usage("{}: \"{}\" at {} is no count", what, name, at);
  } else if (name == "items") {
    check_schema(value, at + "[]", what);
  } else if (name == "properties") {
    if (!value.is_object()) fail_usage("{}: \"properties\" at {} is not an object", what, at);
    for (const auto& [key, inner] : value.items())
      check_schema(inner, at + "." + key, what);
  } else if (name == "additionalProperties") {
    if (!value.is_boolean()) check_schema(value, at + ".*", what);
  } else {
    fail_usage(
        "{}: \"{}\" at {} is not supported; there are type, enum, minimum, maximum, "
        "exclusiveMinimum, exclusiveMaximum, minLength, maxLength, items, minItems, maxItems, "
        "properties, required, additionalProperties",
        what, name, at);
  }
}

void check_schema(const Json& schema, const std::string& at, std::string_view what) {
  if (!schema.is_object()) fail_usage("{}: the schema of {} is not an object", what, at);
  for (const auto& [name, value] : schema.items())
    check_keyword(name, value, at, what);
}

/// Exact for integers if long double has 64 bits.
long double number_of(const Json& value) {
  if (value.is_number_unsigned()) return static_cast<long double>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return static_cast<long double>(value.get<std::int64_t>());
  return static_cast<long double>(value.get<double>());
}

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return number_of(a) == number_of(b);
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_value);
  if (!a.is_object()) return a == b;
  for (const auto& [name, value] : a.items()) {
    const auto other = b.find(name);
    if (other == b.end() || !same_value(value, *other)) return false;
  }
  return true;
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number" || !value.is_number()) return value.is_number();
  return number_of(value) == std::floor(number_of(value));
}

std::size_t code_points(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

std::string shown(const Json& value) {
  return first_characters(dump_json(value), kShownValue);
}

std::string count_misfit(const Json& schema, const char* least, const char* most, std::size_t count,
                         const std::string& at, const char* unit) {
  if (const auto found = schema.find(least);
      found != schema.end() && count < found->get<std::uint64_t>())
    return fmt::format("{} has {} {}, fewer than {}", at, count, unit, found->get<std::uint64_t>());
  if (const auto found = schema.find(most);
      found != schema.end() && count > found->get<std::uint64_t>())
    return fmt::format("{} has {} {}, more than {}", at, count, unit, found->get<std::uint64_t>());
  return {};
}

std::string number_misfit(const Json& schema, const Json& value, const std::string& at) {
  const long double x = number_of(value);
  const auto beyond = [&](const char* name, auto fits) {
    const auto found = schema.find(name);
    return found != schema.end() && !fits(x, number_of(*found));
  };
  if (beyond("minimum", [](auto a, auto b) { return a >= b; }) ||
      beyond("maximum", [](auto a, auto b) { return a <= b; }) ||
      beyond("exclusiveMinimum", [](auto a, auto b) { return a > b; }) ||
      beyond("exclusiveMaximum", [](auto a, auto b) { return a < b; }))
    return fmt::format("{} is {}, out of its range", at, shown(value));
  return {};
}

std::string misfit_of(const Json& schema, const Json& value, const std::string& at);

/// Cuts off the bytes that the parser read, because they may end inside a character.
std::string without_bytes(const std::string& why) {
  return why.substr(0, why.find("; last read"));
}

std::string array_misfit(const Json& schema, const Json& value, const std::string& at) {
  std::string why = count_misfit(schema, "minItems", "maxItems", value.size(), at, "elements");
  const auto items = schema.find("items");
  for (std::size_t i = 0; why.empty() && items != schema.end() && i < value.size(); ++i)
    why = misfit_of(*items, value[i], fmt::format("{}[{}]", at, i));
  return why;
}

std::string object_misfit(const Json& schema, const Json& value, const std::string& at) {
  if (const auto required = schema.find("required"); required != schema.end())
    for (const Json& name : *required)
      if (!value.contains(name.get<std::string>()))
        return fmt::format("{} has no '{}'", at, name.get<std::string>());
  const auto properties = schema.find("properties");
  const auto others = schema.find("additionalProperties");
  for (const auto& [name, member] : value.items()) {
    const std::string place = at + "." + first_characters(name, kShownValue);
    std::string why;
    if (properties != schema.end() && properties->contains(name))
      why = misfit_of((*properties)[name], member, place);
    else if (others != schema.end() && others->is_object())
      why = misfit_of(*others, member, place);
    else if (others != schema.end() && !others->get<bool>())
      why = fmt::format("{} is none of its properties", place);
    if (!why.empty()) return why;
  }
  return {};
}

std::string misfit_of(const Json& schema, const Json& value, const std::string& at) {
  if (const auto type = schema.find("type"); type != schema.end()) {
    const Json types = type->is_array() ? *type : Json::array({*type});
    if (std::none_of(types.begin(), types.end(),
                     [&](const Json& one) { return has_type(value, one.get<std::string>()); }))
      return fmt::format("{} is {}, not of the type {}", at, shown(value), shown(*type));
  }
  if (const auto values = schema.find("enum"); values != schema.end())
    if (std::none_of(values->begin(), values->end(),
                     [&](const Json& one) { return same_value(one, value); }))
      return fmt::format("{} is {}, not one of {}", at, shown(value), shown(*values));
  if (value.is_number()) return number_misfit(schema, value, at);
  if (value.is_string())
    return count_misfit(schema, "minLength", "maxLength", code_points(value.get<std::string>()), at,
                        "characters");
  if (value.is_array()) return array_misfit(schema, value, at);
  if (value.is_object()) return object_misfit(schema, value, at);
  return {};
}

}  // namespace

JsonSchema::JsonSchema(Json schema, std::string_view what) : schema_(std::move(schema)) {
  check_schema(schema_, "$", what);
}

std::string JsonSchema::misfit(const Json& value) const {
  return misfit_of(schema_, value, "$");
}

Json parse_answer(std::string_view said) {
  const std::string text = mend_json(said);
  constexpr std::string_view kFence = "```";
  const std::size_t begin = text.find(kFence);
  try {
    return parse_json(text, "the answer");
  } catch (const Error& error) {
    if (begin == text.npos) fail("{}", without_bytes(error.what()));
  }
  const std::size_t end = text.find(kFence, begin + kFence.size());
  if (end == text.npos) fail("the answer's fenced block has no end");
  if (text.find(kFence, end + kFence.size()) != text.npos)
    fail("the answer has more than one fenced block");
  std::string_view block = text;
  block = block.substr(begin + kFence.size(), end - begin - kFence.size());
  // Skip the language, as in ```json.
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto word = std::find_if_not(block.begin(), block.end(), letter);
  if (word != block.end() &&
      (*word == ' ' || *word == '\n' || *word == '\r' || *word == '{' || *word == '['))
    block.remove_prefix(static_cast<std::size_t>(word - block.begin()));
  try {
    return parse_json(block, "the answer's fenced block");
  } catch (const Error& error) {
    fail("{}", without_bytes(error.what()));
  }
}

}  // namespace vfm::text
