// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe_field.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "base/json.h"
#include "train/recipe/recipe_keys.h"

namespace vfm::train {
namespace {

/// Letters to insert, remove or change (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j - 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// Where the setting's word stands among `words`. Refuses others.
template <class Words>
std::size_t place_of(const Setting& setting, const Words& words) {
  const auto found =
      setting.list ? words.end() : std::find(words.begin(), words.end(), setting.values[0]);
  if (found == words.end()) refuse(setting, fmt::format("one of {}", fmt::join(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace

std::string Field::setting() const {
  const Json value = get();
  return key + "=" + (value.is_string() ? value.get<std::string>() : dump_json(value));
}

void refuse(const Setting& setting, const std::string& allowed) {
  std::string text = fmt::format("{}", fmt::join(setting.values, ", "));
  if (setting.list) text = "[" + text + "]";
  fail_usage("'{}' in {} is {}, must be {}", setting.key, setting.where,
             text.empty() ? "empty" : "'" + text + "'", allowed);
}

std::string Range::text(std::string kind) const {
  const bool bounded_below = std::isfinite(low), bounded_above = std::isfinite(high);
  if (bounded_below) kind += fmt::format(" {} {}", open ? "above" : "of at least", low);
  if (bounded_above) kind += fmt::format("{} at most {}", bounded_below ? " and" : " of", high);
  return kind;
}

std::string Range::short_text() const {
  if (std::isfinite(low) && std::isfinite(high)) return fmt::format("{} to {}", low, high);
  if (!std::isfinite(low)) return "any";
  return fmt::format("{} {}", open ? "above" : "from", low);
}

FieldList& FieldList::in_stages(bool may) {
  fields.back().stage_may_change = may;
  return *this;
}

FieldList& FieldList::quiet() {
  fields.back().quiet = true;
  return *this;
}

FieldList& FieldList::flag(const char* name, bool& value) {
  return add(
      name,
      [&value](const Setting& setting) {
        const std::string text = setting.list ? "" : setting.values[0];
        if (text != "true" && text != "false") refuse(setting, "true or false");
        value = text == "true";
      },
      [&value] { return Json(value); }, "true or false");
}

FieldList& FieldList::names(const char* name, std::vector<std::string>& list) {
  return add(
      name,
      [&list](const Setting& setting) {
        if (!setting.list) refuse(setting, "a list [a, b, ...]");
        list = setting.values;
      },
      [&list] { return Json(list); }, "a list of names");
}

FieldList& FieldList::choice(const char* name, std::string& value, std::vector<std::string> words,
                             std::function<void()> then) {
  return add(
      name,
      [&value, words, then](const Setting& setting) {
        value = words[place_of(setting, words)];
        if (then) then();
      },
      [&value] { return Json(value); }, fmt::format("{}", fmt::join(words, ", ")));
}

FieldList& FieldList::choice(const char* name, std::span<const std::string_view> words,
                             std::function<void(std::size_t)> set,
                             std::function<std::size_t()> get) {
  return add(
      name, [set, words](const Setting& setting) { set(place_of(setting, words)); },
      [get, words] { return Json(words[get()]); }, fmt::format("{}", fmt::join(words, ", ")));
}

FieldList& FieldList::add(std::string_view name, std::function<void(const Setting&)> set,
                          std::function<Json()> get, std::string values) {
  fields.push_back(
      {prefix_ + std::string(name), false, std::move(set), std::move(get), std::move(values),
       in_stages_});
  return *this;
}

void add_adapter_fields(FieldList& list, models::LoraOptions& lora) {
  list.section("lora")
      .number("rank", lora.rank, between(0, 4096))
      .number("alpha", lora.alpha, between(0, 1e30))
      .names("targets", lora.targets);
}

const Field* find_field(const std::vector<Field>& fields, const std::string& key) {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

std::string nearest_key(const std::vector<Field>& fields, const std::string& key) {
  const auto distance = [&](const Field& field) {
    const bool same_leaf = field.key.ends_with("." + key.substr(key.rfind('.') + 1));
    return same_leaf ? std::size_t{0} : edit_distance(key.substr(0, 200), field.key);
  };
  return std::min_element(fields.begin(), fields.end(),
                          [&](const Field& a, const Field& b) { return distance(a) < distance(b); })
      ->key;
}

}  // namespace vfm::train
