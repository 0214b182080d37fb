// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "base/json.h"
#include "train/encoded/clip_fields.h"
#include "train/kind.h"
#include "train/recipe/recipe_field.h"
#include "train/recipe/recipe_keys.h"

namespace vfm::train {
namespace {

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

/// Comments are of one line each.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

/// A key as the types of models have it that have it.
struct Described {
  std::string key, marks;
  /// Default and values by type, in the order of the types.
  std::vector<std::array<std::string, 3>> types;
};

/// In the order in which they first come.
std::vector<Described> describe_all() {
  std::vector<Described> all;
  for (const std::string& type : model_types()) {
    Recipe recipe;
    recipe.model.type = type;
    auto place = all.begin();  // behind the key that came before it
    for (const Field& field : fields_of(recipe)) {
      auto found = std::ranges::find(all, field.key, &Described::key);
      if (found == all.end()) {
        // The keys that only another type has come at the end of their section, but for those of
        // data, which belong to the one before. Sections that only it has come before the data.
        const std::string section = field.key.substr(0, field.key.find('.') + 1);
        const bool fresh = std::ranges::none_of(
            all, [&](const Described& one) { return one.key.starts_with(section); });
        while (place != all.end() && section != "data." &&
               (fresh ? !place->key.starts_with("data.") : place->key.starts_with(section)))
          ++place;
        const char* marks = field.may_change ? "\\*" : field.stage_may_change ? "+" : "";
        found = all.insert(place, {field.key, marks, {}});
      }
      found->types.push_back(
          {type, value_text(field.key == "model.type" ? Json(Recipe().model.type) : field.get()),
           field.values});
      place = found + 1;
    }
  }
  return all;
}

/// "28; tokenizer: 2" of the column; the one that most types have first.
std::string by_type(const Described& key, std::size_t column) {
  std::vector<std::pair<std::string, std::string>> values;  // value, types
  for (const auto& type : key.types) {
    auto found =
        std::ranges::find(values, type[column], &std::pair<std::string, std::string>::first);
    if (found == values.end()) found = values.insert(found, {type[column], ""});
    found->second += (found->second.empty() ? "" : ", ") + type[0];
  }
  std::string text = values.front().first;
  for (std::size_t i = 1; i < values.size(); ++i)
    text += fmt::format("; {}: {}", values[i].second, values[i].first);
  return text;
}

std::string escaped(const std::string& text) {
  std::string marked;
  for (const char c : text) {
    if (c == '_' || c == '*' || c == '\\') marked += '\\';
    marked += c;
  }
  return marked;
}

/// Which types have the key, "dit, stdit: "; "": all.
std::string types_of(const Described& key) {
  std::string names, missing;
  for (const std::string& type : model_types()) {
    const bool has =
        std::ranges::any_of(key.types, [&](const auto& each) { return each[0] == type; });
    std::string& list = has ? names : missing;
    list += (list.empty() ? "" : ", ") + type;
  }
  if (missing.empty()) return "";
  return missing.find(',') == std::string::npos ? "not " + missing + ": " : names + ": ";
}

KeyWords key_words_of(const std::string& key) {
  std::vector<KeyWords> all = key_words();
  const auto found = std::ranges::find(all, key, &KeyWords::key);
  if (found == all.end()) throw std::logic_error("nothing is said of '" + key + "'");
  return std::move(*found);
}

/// What the types of models are: "*dit* is the ...".
std::string type_words() {
  std::string words;
  for (const std::string& type : model_types())
    words += fmt::format("{}*{}* {}", words.empty() ? "" : " ", type, kind_of(type).words(type));
  return words;
}

/// Which matrices get adapters by default: "to_q, to_v; moviegen: to_q".
std::string usual_targets() {
  Described usual;
  for (const std::string& type : model_types()) {
    Recipe recipe;
    recipe.model.type = type;
    static_cast<void>(fields_of(recipe));  // the model becomes one of the type
    std::string names;
    for (const std::string& name : kind_of(type).adapter_targets(recipe))
      names += (names.empty() ? "" : ", ") + name;
    if (!names.empty()) usual.types.push_back({type, names});
  }
  return escaped(by_type(usual, 1));
}

/// What types say of a key besides `said`.
std::string words_of_types(const std::string& key, const std::string& said) {
  if (key == "lora.targets") return fmt::format(" []: {}.", usual_targets());
  std::string words;
  for (const std::string& type : model_types()) {
    const std::string own = kind_of(type).key_words(type, key);
    if (own.empty() || own == said) continue;
    words += key.starts_with("model.") ? fmt::format(" Of type *{}*: {}", type, own) : " " + own;
  }
  return words;
}

/// Behind "default": that the data decide, or that latents have it already.
std::string beside_default(const Recipe& recipe, const Field& field) {
  const bool zero = field.get() == Json(0);
  if (zero && key_words_of(field.key).words.find("0: as in the data") != std::string::npos)
    return ": as in the data";
  DataRecipe data;
  FieldList of_clips;
  add_clip_fields(of_clips.section("data"), data);
  const bool of_clip =
      std::ranges::find(of_clips.fields, field.key, &Field::key) != of_clips.fields.end();
  return of_clip && !kind_of(recipe.model.type).one_by_one() ? ", only with --tokenizer" : "";
}

}  // namespace

std::string explained_yaml(const Recipe& recipe, std::span<const Setting> settings,
                           const std::string& begun) {
  std::map<std::string, std::string> given;
  for (const Setting& setting : settings)
    given[setting.key] = setting.where;
  Recipe copy = recipe, usual = usual_recipe(recipe);
  const std::vector<Field> fields = fields_of(copy), defaults = fields_of(usual);
  std::string text, section;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& key = fields[i].key;
    const std::size_t dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      text += section + ":\n";
    }
    std::string where = "default";
    if (const auto found = given.find(key); found != given.end())
      where = found->second;
    else if (fields[i].get() != defaults[i].get())
      where = begun.empty() ? "follows from other keys" : "of '" + begun + "'";
    if (where == "default") where += beside_default(recipe, fields[i]);
    text += fmt::format("{:<40} # {}\n",
                        fmt::format("  {}: {}", key.substr(dot + 1), value_text(fields[i].get())),
                        one_line(where));
  }
  return text;
}

std::string recipe_manual() {
  std::string text, section;
  for (const Described& key : describe_all()) {
    const std::size_t dot = key.key.find('.');
    if (key.key.substr(0, dot) != section) {
      section = key.key.substr(0, dot);
      text += (text.empty() ? "## " : "\n## ") + section + "\n";
    }
    const KeyWords said = key_words_of(key.key);
    text += fmt::format("\n*{}*{} ({})\n\t{}{}{}. {}{}\n", escaped(key.key), key.marks,
                        escaped(by_type(key, 1)), types_of(key), escaped(by_type(key, 2)),
                        said.unit.empty() ? "" : fmt::format(" {}", said.unit),
                        said.words.empty() ? type_words() : said.words,
                        words_of_types(key.key, said.words));
  }
  return text;
}

}  // namespace vfm::train
