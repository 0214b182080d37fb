// Attributes, items, slices, loops: how the parts of a value are reached.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/template/builtins.h"
#include "text/template/python_text.h"

namespace vfm::text::jinja {
namespace {

constexpr std::int64_t kFarthest = std::int64_t{kLargest};

/// The methods in Python, including those that are not supported here.
constexpr std::string_view kStringMethods[] = {
    "capitalize",   "casefold",   "center",     "count",        "encode",   "endswith",
    "expandtabs",   "find",       "format",     "format_map",   "index",    "isalnum",
    "isalpha",      "isascii",    "isdecimal",  "isdigit",      "islower",  "isnumeric",
    "isprintable",  "isspace",    "istitle",    "isupper",      "join",     "ljust",
    "lower",        "lstrip",     "partition",  "removeprefix", "replace",  "rfind",
    "removesuffix", "rindex",     "rjust",      "rpartition",   "rsplit",   "rstrip",
    "split",        "splitlines", "startswith", "strip",        "swapcase", "title",
    "translate",    "upper",      "zfill"};
constexpr std::string_view kMappingMethods[] = {"clear",      "copy",   "fromkeys", "get",
                                                "items",      "keys",   "pop",      "popitem",
                                                "setdefault", "update", "values"};
constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};

template <class Names>
bool among(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value loop_attribute(const Value& of, const std::string& name, Run& run) {
  const Loop& loop = *of.loop();
  const List& items = loop.items->items;
  const auto place = static_cast<std::int64_t>(loop.place),
             count = static_cast<std::int64_t>(items.size());
  if (name == "index") return Value::of(place + 1);
  if (name == "index0") return Value::of(place);
  if (name == "revindex") return Value::of(count - place);
  if (name == "revindex0") return Value::of(count - place - 1);
  if (name == "first") return Value::of(place == 0);
  if (name == "last") return Value::of(place + 1 == count);
  if (name == "length") return Value::of(count);
  // Only recursive loops are deeper, and the parser refuses them.
  if (name == "depth" || name == "depth0") return Value::of(std::int64_t{name == "depth"});
  if (name == "previtem")
    return place > 0 ? items[loop.place - 1] : Value::undefined("loop.previtem");
  if (name == "nextitem")
    return place + 1 < count ? items[loop.place + 1] : Value::undefined("loop.nextitem");
  if (name == "cycle") return Value::of(Function{name, of});
  run.refuse("'loop.{}' is not supported", name);
}

/// Returns the index of `at` among `count` items, or nothing if it is outside.
std::optional<std::size_t> place_of(std::int64_t at, std::size_t count) {
  const auto size = static_cast<std::int64_t>(count);
  if (at < 0) at += size;
  if (at < 0 || at >= size) return std::nullopt;
  return static_cast<std::size_t>(at);
}

}  // namespace

Value attribute_of(const Value& of, const std::string& name, Run& run) {
  if (of.is_undefined()) run.refuse("{} has no '{}'", of.kind(), name);
  if (of.loop()) return loop_attribute(of, name, run);
  if (const Space* space = of.space()) {
    const auto found = space->items.find(name);
    return found == space->items.end() ? Value::undefined(name) : found->second;
  }
  const bool method = (of.mapping() && among(name, kMappingMethods)) ||
                      (of.string() && among(name, kStringMethods)) ||
                      (of.list() && among(name, kListMethods));
  if (method) return Value::of(Function{name, of});
  if (of.mapping()) {
    run.charge(of.mapping()->size());
    if (const Value* value = find(*of.mapping(), name)) return *value;
  }
  return Value::undefined(name);
}

Value item_of(const Value& of, const Value& key, Run& run) {
  if (of.is_undefined()) run.refuse("{} has no items", of.kind());
  if (of.mapping() && key.string()) {
    run.charge(of.mapping()->size());
    if (const Value* value = find(*of.mapping(), *key.string())) return *value;
  }
  if (key.is_integer() || key.is_bool()) {
    if (of.list()) {
      const auto place = place_of(key.integer(), of.list()->size());
      return place ? (*of.list())[*place] : Value::undefined(std::to_string(key.integer()));
    }
    if (of.string()) {
      run.charge_bytes(of.string()->size());
      const auto characters = code_points(*of.string());
      const auto place = place_of(key.integer(), characters.size());
      return place ? Value::of(std::string(characters[*place]))
                   : Value::undefined(std::to_string(key.integer()));
    }
    return Value::undefined(std::to_string(key.integer()));
  }
  if (!key.string()) return Value::undefined("the item");
  if (key.string()->starts_with('_')) return Value::undefined(*key.string());
  return attribute_of(of, *key.string(), run);
}

Value slice_of(const Value& of, const Value* begin, const Value* end, const Value* step, Run& run) {
  if (!of.list() && !of.string()) run.refuse("{} cannot be sliced", of.kind());
  const auto given = [&](const Value* value) {
    return value != nullptr && !value->is_none()
               ? std::optional(need_integer(*value, "a slice", run))
               : std::nullopt;
  };
  const std::int64_t by = given(step).value_or(1);
  if (by == 0 || by < -kFarthest || by > kFarthest) run.refuse("a slice by {}", by);
  run.charge_bytes(of.weight());
  const std::vector<std::string_view> characters =
      of.string() ? code_points(*of.string()) : std::vector<std::string_view>();
  const auto count = static_cast<std::int64_t>(of.string() ? characters.size() : of.list()->size());
  // As in Python's slice.indices().
  const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? count : count - 1;
  const auto place = [&](const Value* value, std::int64_t otherwise) {
    const auto at = given(value);
    if (!at) return otherwise;
    return std::clamp(*at < 0 ? std::max(*at, -count - 1) + count : *at, low, high);
  };
  const std::int64_t from = place(begin, by > 0 ? low : high), to = place(end, by > 0 ? high : low);
  List items;
  std::string text;
  for (std::int64_t i = from; by > 0 ? i < to : i > to; i += by) {
    if (of.string())
      text += characters[static_cast<std::size_t>(i)];
    else
      items.push_back((*of.list())[static_cast<std::size_t>(i)]);
  }
  if (of.string()) return Value::of(std::move(text));
  return Value::of(std::move(items), run, of.is_tuple());
}

List items_of(const Value& value, Run& run) {
  List items;
  if (value.list()) {
    run.charge(value.list()->size());
    return *value.list();
  }
  if (value.mapping()) {
    run.charge(value.mapping()->size());
    for (const auto& [key, item] : *value.mapping())
      items.push_back(Value::of(key));
  } else if (value.string()) {
    run.charge(value.string()->size());
    for (const std::string_view character : code_points(*value.string()))
      items.push_back(Value::of(std::string(character)));
  } else if (!value.is_undefined()) {
    run.refuse("{} has nothing to go over", value.kind());
  }
  return items;
}

bool contains(const Value& container, const Value& value, Run& run) {
  if (container.string()) {
    run.charge_bytes(container.string()->size());
    return container.string()->find(need_string(value, "'in'", run)) != std::string::npos;
  }
  if (container.mapping()) {
    run.charge(container.mapping()->size());
    return value.string() && find(*container.mapping(), *value.string()) != nullptr;
  }
  if (container.list()) {
    for (const Value& item : *container.list())
      if (equal(item, value, run)) return true;
    return false;
  }
  if (container.is_undefined()) return false;
  run.refuse("'in' cannot look into {}", container.kind());
}

int compare(const Value& a, const Value& b, Run& run) {
  if (a.is_number() && b.is_number()) {
    if (!a.is_real() && !b.is_real())
      return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
    // NaN compares as equal to all numbers. No template depends on this.
    return a.real() < b.real() ? -1 : a.real() > b.real();
  }
  if (a.string() && b.string()) {
    run.charge_bytes(std::min(a.string()->size(), b.string()->size()));
    return a.string()->compare(*b.string());
  }
  run.refuse("{} and {} have no order", a.kind(), b.kind());
}

const std::string& need_string(const Value& value, std::string_view of, Run& run) {
  if (!value.string()) run.refuse("{} needs a string, not {}", of, value.kind());
  return *value.string();
}

std::int64_t need_integer(const Value& value, std::string_view of, Run& run) {
  if (!value.is_integer() && !value.is_bool())
    run.refuse("{} needs a whole number, not {}", of, value.kind());
  return value.integer();
}

}  // namespace vfm::text::jinja
