// Recipes as text (vfm-recipe(5)). They are read from YAML and from "section.key=value" on the
// command line, where later settings win, and written as YAML and JSON.
//
// An unknown key, a wrong type or a value out of range is Error{usage} with the key, its place in
// the input, and the nearest known key or the allowed range.
// Thread-safety: values and free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/folder/model_config.h"
#include "models/folder/model_facts.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

class Kind;

/// One setting by the user: "optimizer.lr" to "2e-3". A list has several values.
struct Setting {
  std::string key;
  std::vector<std::string> values;
  bool list = false;
  std::string where;  ///< for messages: "line 3 of 'a.yaml'", "argument 'optimizer.lr=2e-3'"
};

/// Parses YAML into settings, in the order of the text. Throws Error{usage} if the text is not
/// YAML, is nested too deep, or repeats a key. `what` names the text in errors. Pure; fuzzed.
std::vector<Setting> parse_yaml(std::string_view text, std::string_view what);
/// Parses "key=value"; the value is YAML ("[0.1, 1]" is a list).
Setting parse_override(std::string_view argument);
/// Parses several; all errors are reported together.
std::vector<Setting> parse_overrides(const std::vector<std::string>& overrides);

/// The settings of the file `path`, if it is not "", and then those of the command line.
std::vector<Setting> read_settings(const std::string& path,
                                   const std::vector<std::string>& overrides);
/// The kind of training that these settings ask for (train/kind.h).
const Kind& kind_of(std::span<const Setting> settings);
/// True if these settings ask for adapters, by a 'lora.rank' other than 0.
bool sets_adapters(std::span<const Setting> settings);

/// The recipe that takes the place of the defaults if a run continues an earlier one as its next
/// stage.
struct EarlierRecipe {
  std::vector<Setting> settings;  ///< all settings of it whose keys still exist
  /// The earlier run's name for messages. "" if the settings are those of the resumed run itself;
  /// train/state/beginning.h compares them when the data are known.
  std::string run;
};

/// The settings that a run gets from the model it begins from (train/state/beginning.h).
struct Beginning {
  /// The settings must agree with it. Otherwise an error lists all that do not.
  models::ModelConfig model;
  models::LoraOptions adapters;  ///< adapters that the run continues to train; rank 0: none
  /// Takes the place of the defaults. With facts.scale no setting may change the whitening. The
  /// process is that of facts.sampling, and no setting may change it.
  DiffusionRecipe diffusion;
  models::ModelFacts facts;
  /// Set for a next stage. Then this recipe decides which settings may change (changed_settings),
  /// and not the model.
  std::optional<EarlierRecipe> earlier;
};

/// Applies the settings in order to the defaults, or to what the run begins from, and checks the
/// result. All errors in the settings are reported together.
Recipe make_recipe(std::span<const Setting> settings, const Beginning* beginning = nullptr);
/// Throws Error{usage} if a model that begins from scratch has no size set at all. The default
/// sizes are those of a large model.
void check_size(const Recipe& recipe);
/// Every field as YAML, by section. make_recipe() makes the same recipe of it.
std::string to_yaml(const Recipe& recipe);
/// The same as {"section":{"key":value}}.
Json to_json(const Recipe& recipe);

/// For messages: "'data.tokens' is 256", or "'data.tokens' is 8192 (default)" if nobody set it.
/// Throws std::logic_error for a key that recipes of this type do not have.
std::string describe_setting(const Recipe& recipe, const std::string& key);

/// Whether recipes of this type have the key.
bool has_key(const Recipe& recipe, const std::string& key);
/// Calls `check`, with which a model checks its configuration. Models know nothing of recipes: if
/// `check` throws, the error gets the settings among the named fields that are defaults.
void check_model(const Recipe& recipe, const std::function<void()>& check);

/// A choice of settings to compare. kept: those that a resumed run must not change. free: all
/// others, which are learning rate, lengths, intervals and use of memory. kept_by_stages: those
/// that a next stage must not change (train/state/next_stage.h). Keys of 'parallel' are in none of
/// them.
enum class Compared { kept, free, kept_by_stages };
/// The differences of these settings between a checkpoint's recipe (to_json) and this one, as "key:
/// old -> new".
std::vector<std::string> changed_settings(const Json& old, const Recipe& now,
                                          Compared which = Compared::kept);

}  // namespace vfm::train
