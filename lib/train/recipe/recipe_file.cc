// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/address.h"
#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "train/kind.h"
#include "train/recipe/recipe_checks.h"
#include "train/recipe/recipe_field.h"
#include "train/recipe/recipe_keys.h"

namespace vfm::train {
namespace {

/// Whether there is a type of model that has the key.
bool is_of_other_type(const std::string& key) {
  return std::ranges::any_of(model_types(), [&](const std::string& type) {
    Recipe other;
    other.model.type = type;
    return find_field(fields_of(other), key) != nullptr;
  });
}

/// Whether the field of that value is a default that was not set.
bool is_default(const Recipe& recipe, const std::string& key, const Json& value) {
  if (recipe.given.contains(key)) return false;
  Recipe usual = usual_recipe(recipe);
  const std::vector<Field> defaults = fields_of(usual);
  const Field* field = find_field(defaults, key);
  return field != nullptr && field->get() == value;
}

/// What is wrong with settings, each by itself: all of it is said at once.
class Faults {
 public:
  template <class Act>
  void collect(const Act& act) {
    try {
      act();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      words_.emplace_back(error.what());
    }
  }
  bool none() const { return words_.empty(); }
  /// Throws Error{usage} if there was any.
  void end() const {
    if (words_.size() == 1) fail_usage("{}", words_[0]);
    std::string all;
    for (std::size_t i = 0; i < words_.size(); ++i)
      all += fmt::format("{} ({}) {}", i == 0 ? "" : ";", i + 1, words_[i]);
    if (!words_.empty()) fail_usage("{} settings are wrong:{}", words_.size(), all);
  }

 private:
  std::vector<std::string> words_;
};

/// Throws Error{usage} listing all settings that are of other types of model than the recipe's.
void refuse_other_types(std::span<const Setting> settings, const std::vector<Field>& fields,
                        const std::string& type) {
  std::vector<std::string> others;
  bool said = false;
  for (const Setting& setting : settings) {
    said = said || setting.key == "model.type";
    if (!find_field(fields, setting.key) && is_of_other_type(setting.key))
      others.push_back(fmt::format("'{}' in {}", setting.key, setting.where));
  }
  if (others.empty()) return;
  fail_usage(
      "{} {} not for {}: leave {} out", fmt::join(others, ", "), others.size() == 1 ? "is" : "are",
      said ? fmt::format("a 'model.type' of {}", type)
           : fmt::format("a model of type {}, which it is where 'model.type' is not set", type),
      others.size() == 1 ? "it" : "them");
}

/// The type of a model to begin from, and its configuration into the recipe.
std::string take_initial(ModelRecipe& model, const Beginning& beginning) {
  for (const Kind* kind : kinds())
    if (std::string type = kind->begin_from(model, beginning.model); !type.empty()) return type;
  throw std::logic_error("a model of no kind");
}

/// The recipe and the model that the run begins from.
void check_initial(const Recipe& recipe, const Beginning& beginning) {
  Recipe fitting = recipe;
  take_initial(fitting.model, beginning);
  const models::Process process = beginning.facts.sampling.process;
  if (recipe.diffusion.process != process)
    fail_usage(
        "'diffusion.process' is {}, but the model to begin from was trained with {}: set it to "
        "that, or leave it out",
        recipe.diffusion.process.name(), process.name());
  if (beginning.facts.scale && recipe.diffusion.whitening != beginning.diffusion.whitening)
    fail_usage(
        "'diffusion.whitening' is {}, but the model to begin from sees latents in a scale of its "
        "own, of {}; leave it out",
        recipe.diffusion.whitening, beginning.diffusion.whitening);
  const std::vector<std::string> differences = changed_settings(to_json(fitting), recipe);
  if (!differences.empty())
    fail_usage("the recipe is not that of the model to begin from: {}; leave these out",
               fmt::join(differences, "; "));
  const models::LoraOptions &theirs = beginning.adapters, &ours = recipe.lora;
  if (theirs.rank > 0 &&
      (ours.rank != theirs.rank || ours.alpha != theirs.alpha || ours.targets != theirs.targets))
    fail_usage(
        "the adapters to continue have rank {}, alpha {} and targets [{}], the recipe's have {}, "
        "{} and [{}]; leave 'lora' out, or begin new ones with --init-lora merge",
        theirs.rank, theirs.alpha, fmt::join(theirs.targets, ", "), ours.rank, ours.alpha,
        fmt::join(ours.targets, ", "));
}

/// The recipe of an earlier run and that of its next stage: all that the stage may not change is
/// said at once.
void check_stage(const Recipe& earlier, const Recipe& recipe, const std::string& run) {
  std::vector<std::string> refused =
      changed_settings(to_json(earlier), recipe, Compared::kept_by_stages);
  for (std::string& words : kind_of(recipe.model.type).refused_of_stage(earlier, recipe))
    refused.push_back(std::move(words));
  if (refused.empty()) return;
  fail_usage(
      "a stage that continues '{}' cannot change {}; leave {} out, or begin a new run from its "
      "weights alone with --init '{}'",
      run, fmt::join(refused, "; "), refused.size() == 1 ? "it" : "these", run);
}

bool is_compared(const Field& field, Compared which) {
  if (which == Compared::free) return field.may_change;
  return !field.may_change && (which == Compared::kept || !field.stage_may_change);
}

}  // namespace

Recipe make_recipe(std::span<const Setting> settings, const Beginning* beginning) {
  Recipe recipe;
  std::string initial_type;
  if (beginning) {
    recipe.model.type = initial_type = take_initial(recipe.model, *beginning);
    recipe.model.begun = true;
    recipe.diffusion = beginning->diffusion;
    set_process(recipe, beginning->facts.sampling.process);
    recipe.autoregressive.text_padding = beginning->facts.text_padding;
    recipe.lora = beginning->adapters;
  }
  Faults faults, of_type;
  // First the type of the model: it decides which keys there are.
  for (const Setting& setting : settings)
    if (setting.key == "model.type")
      of_type.collect([&] { fields_of(recipe).front().set(setting); });
  if (beginning && recipe.model.type != initial_type)
    fail_usage("'model.type' is {}, but the model to begin from is a {}", recipe.model.type,
               initial_type);
  const Kind& kind = kind_of(recipe.model.type);
  const std::vector<Field> fields = fields_of(recipe);
  if (of_type.none())
    faults.collect([&] { refuse_other_types(settings, fields, recipe.model.type); });
  const EarlierRecipe* earlier = beginning && beginning->earlier ? &*beginning->earlier : nullptr;
  if (earlier != nullptr)
    for (const Setting& setting : earlier->settings)
      if (const Field* field = find_field(fields, setting.key)) field->set(setting);
  Recipe before = recipe;
  kind.settle(before);
  // Other defaults depend on the process.
  std::vector<Setting> ordered(settings.begin(), settings.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Setting& setting) { return setting.key == "diffusion.process"; });
  for (const Setting& setting : ordered)
    faults.collect([&] {
      if (const Field* field = find_field(fields, setting.key)) {
        recipe.given.insert(setting.key);
        field->set(setting);
      } else if (!is_of_other_type(setting.key)) {
        fail_usage("unknown key '{}' in {}; did you mean '{}'?", setting.key, setting.where,
                   nearest_key(fields, setting.key));
      }
    });
  faults.end();
  kind.settle(recipe);
  if (earlier == nullptr && beginning) check_initial(recipe, *beginning);
  if (earlier != nullptr && !earlier->run.empty()) check_stage(before, recipe, earlier->run);
  faults.collect([&] { check_adapters(recipe, beginning != nullptr); });
  faults.collect([&] { check_offloaded(recipe); });
  faults.collect([&] { check_context(recipe); });
  faults.collect([&] { check_pipeline(recipe); });
  faults.collect([&] { check_shards(recipe); });
  faults.collect([&] { check_optimizer(recipe); });
  faults.collect([&] { kind.check(recipe); });
  faults.end();
  return recipe;
}

std::vector<Setting> parse_overrides(const std::vector<std::string>& overrides) {
  std::vector<Setting> settings;
  Faults faults;
  for (const std::string& argument : overrides)
    faults.collect([&] { settings.push_back(parse_override(argument)); });
  faults.end();
  return settings;
}

std::vector<Setting> read_settings(const std::string& path,
                                   const std::vector<std::string>& overrides) {
  std::vector<Setting> settings;
  if (!path.empty()) {
    const std::string text = as_usage([&] { return io::read_stream(path); });
    settings = parse_yaml(text, fmt::format("'{}'", path));
  }
  for (Setting& setting : parse_overrides(overrides))
    settings.push_back(std::move(setting));
  for (const Setting& setting : settings)
    for (const std::string& value : setting.values)
      if (const std::string refused = no_file_message(value); !refused.empty())
        fail_usage("'{}' in {}: {}", setting.key, setting.where, refused);
  return settings;
}

bool sets_adapters(std::span<const Setting> settings) {
  std::string rank = "0";
  for (const Setting& setting : settings)
    if (setting.key == "lora.rank" && !setting.list) rank = setting.values[0];
  return rank != "0";
}

const Kind& kind_of(std::span<const Setting> settings) {
  ModelRecipe model;
  FieldList list;
  list.section("model").choice("type", model.type, model_types());
  for (const Setting& setting : settings)
    if (setting.key == "model.type") list.fields.front().set(setting);
  return kind_of(model.type);
}

Json to_json(const Recipe& recipe) {
  Recipe copy = recipe, usual = usual_recipe(recipe);
  const std::vector<Field> fields = fields_of(copy), defaults = fields_of(usual);
  Json sections = Json::object();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.quiet && field.get() == defaults[i].get()) continue;
    const std::size_t dot = field.key.find('.');
    sections[field.key.substr(0, dot)][field.key.substr(dot + 1)] = field.get();
  }
  return sections;
}

std::string to_yaml(const Recipe& recipe) {
  std::string text;
  const Json sections = to_json(recipe);
  for (const auto& [section, keys] : sections.items()) {
    text += section + ":\n";
    for (const auto& [key, value] : keys.items())
      text += fmt::format("  {}: {}\n", key,
                          value.is_string() ? value.get<std::string>() : dump_json(value));
  }
  return text;
}

std::string describe_setting(const Recipe& recipe, const std::string& key) {
  Recipe copy = recipe;
  const std::vector<Field> fields = fields_of(copy);
  const Field* field = find_field(fields, key);
  if (field == nullptr) throw std::logic_error("recipes have no '" + key + "'");
  const Json value = field->get();
  return fmt::format("'{}' is {}{}", key,
                     value.is_string() ? value.get<std::string>() : dump_json(value),
                     is_default(recipe, key, value) ? " (default)" : "");
}

bool has_key(const Recipe& recipe, const std::string& key) {
  Recipe copy = recipe;
  return find_field(fields_of(copy), key) != nullptr;
}

void check_model(const Recipe& recipe, const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    std::string text = error.what(), defaults;
    Recipe copy = recipe;
    for (const Field& field : fields_of(copy)) {
      const std::size_t dot = field.key.find('.');
      const bool named = text.find("'" + field.key.substr(dot + 1) + "'") != std::string::npos;
      if (field.key.starts_with("model.") && named && is_default(recipe, field.key, field.get()))
        defaults += (defaults.empty() ? "" : ", ") + describe_setting(recipe, field.key);
    }
    fail_usage("{}{}{}", text, defaults.empty() ? "" : "; not set in the recipe: ", defaults);
  }
}

std::vector<std::string> changed_settings(const Json& old, const Recipe& now, Compared which) {
  Recipe copy = now, usual = usual_recipe(now);
  std::vector<std::string> changes;
  const std::vector<Field> fields = fields_of(copy), defaults = fields_of(usual);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.key.starts_with("parallel.") || !is_compared(field, which)) continue;
    const std::size_t dot = field.key.find('.');
    const std::string section = field.key.substr(0, dot), key = field.key.substr(dot + 1);
    Json before = defaults[i].get();  // of a checkpoint from before the setting was there
    if (old.is_object() && old.contains(section) && old[section].contains(key))
      before = old[section][key];
    if (before != field.get())
      changes.push_back(fmt::format("{}: {} -> {}{}", field.key, dump_json(before),
                                    dump_json(field.get()),
                                    is_default(now, field.key, field.get()) ? " (default)" : ""));
  }
  return changes;
}

}  // namespace vfm::train
