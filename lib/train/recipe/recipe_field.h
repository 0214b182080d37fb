// One field of a recipe: how it is set from text, checked and shown; and a list to collect them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "train/recipe/recipe_file.h"

namespace vfm::train {

/// A field of the recipe: its key, how to set it and how to show it.
struct Field {
  std::string key;
  bool may_change;  ///< may differ between a checkpoint and the run that continues it
  std::function<void(const Setting&)> set;
  std::function<Json()> get;
  std::string values;  ///< allowed values, as the manual lists them: "1 to 1024"
  /// May differ between a run and its next stage (train/state/next_stage.h). True for keys that
  /// decide which samples there are, how long a step is, and what is learnt from it; false for keys
  /// on which weights, moments and average depend.
  bool stage_may_change = false;
  /// Left out of written recipes where it has its default.
  bool quiet = false;

  std::string setting() const;  ///< "parallel.tp=2"
};

/// Throws Error{usage}, as the value is not allowed.
[[noreturn]] void refuse(const Setting& setting, const std::string& allowed);

/// The allowed values of a number. `open` excludes `low` itself.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open = false;

  bool holds(double x) const { return (open ? x > low : x >= low) && x <= high; }
  /// "a number of at least 1 and at most 8" if `kind` is "a number".
  std::string text(std::string kind) const;
  /// "1 to 8", "above 0".
  std::string short_text() const;
};
constexpr Range kAny;
constexpr Range positive{0, std::numeric_limits<double>::infinity(), true};
constexpr Range at_least(double low) {
  return {low};
}
constexpr Range between(double low, double high) {
  return {low, high};
}

template <class T>
T parse_number(const Setting& setting, const std::string& text, const Range& range) {
  const std::string allowed = range.text(std::is_integral_v<T> ? "a whole number" : "a number");
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(static_cast<double>(value)) ||
      !range.holds(static_cast<double>(value)))
    refuse(setting, allowed);
  return value;
}

/// Collects the fields of one recipe, section by section. They hold references into the recipe.
class FieldList {
 public:
  std::vector<Field> fields;

  /// The next fields are of this section. `in_stages` is their Field::stage_may_change.
  FieldList& section(const std::string& name, bool in_stages = false) {
    prefix_ = name + ".";
    in_stages_ = in_stages;
    return *this;
  }
  /// Marks the last field as one that may change when a run is resumed.
  void may_change() { fields.back().may_change = true; }
  /// Sets Field::stage_may_change of the last field.
  FieldList& in_stages(bool may = true);
  /// Sets Field::quiet of the last field.
  FieldList& quiet();

  template <class T>
  FieldList& number(std::string_view name, T& value, Range range) {
    return add(
        name,
        [&value, range](const Setting& setting) {
          if (setting.list) refuse(setting, range.text("a number"));
          value = parse_number<T>(setting, setting.values[0], range);
        },
        [&value] { return Json(value); }, range.short_text());
  }
  /// A list. A vector may have any length; it may be empty only with `or_none`.
  template <class List>
  FieldList& numbers(const char* name, List& list, Range range, bool or_none = false) {
    return add(
        name,
        [&list, range, or_none](const Setting& setting) {
          using T = typename List::value_type;
          if (!setting.list || (setting.values.empty() && !or_none))
            refuse(setting, "a list [a, b, ...]");
          if constexpr (requires { list.resize(1); })
            list.resize(setting.values.size());
          else if (setting.values.size() != list.size())
            refuse(setting, fmt::format("a list of {} numbers", list.size()));
          for (std::size_t i = 0; i < list.size(); ++i)
            list[i] = parse_number<T>(setting, setting.values[i], range);
        },
        [&list] { return Json(list); }, "a list, each " + range.short_text());
  }
  FieldList& flag(const char* name, bool& value);
  /// A list of names, which may be empty.
  FieldList& names(const char* name, std::vector<std::string>& list);
  /// Calls `then` after the value was set.
  FieldList& choice(const char* name, std::string& value, std::vector<std::string> words,
                    std::function<void()> then = {});
  /// A choice whose words are in the order of the values of T.
  template <class T>
  requires std::is_enum_v<T> FieldList& choice(const char* name, T& value,
                                               std::span<const std::string_view> words) {
    return choice(
        name, words, [&value](std::size_t i) { value = static_cast<T>(i); },
        [&value] { return static_cast<std::size_t>(value); });
  }
  /// A choice that is set and read by the place of its word.
  FieldList& choice(const char* name, std::span<const std::string_view> words,
                    std::function<void(std::size_t)> set, std::function<std::size_t()> get);

 private:
  FieldList& add(std::string_view name, std::function<void(const Setting&)> set,
                 std::function<Json()> get, std::string values);
  std::string prefix_;
  bool in_stages_ = false;
};

/// Adds the section of adapters, for the kinds of training that have adapters.
void add_adapter_fields(FieldList& list, models::LoraOptions& lora);

}  // namespace vfm::train
