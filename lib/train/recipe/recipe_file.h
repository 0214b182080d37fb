// Recipes as text (vfm-recipe(5)): filled from YAML and from "section.key=value" on the command
// line, later ones winning, and written as YAML and JSON.
//
// An unknown key, a wrong type or a value out of range is Error{usage}, with the key, where it
// stands, and the nearest known key or the allowed range. Thread-safety: values and free functions.
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

/// One value that somebody set: "optimizer.lr" to "2e-3". A list has several values.
struct Setting {
  std::string key;
  std::vector<std::string> values;
  bool list = false;
  std::string where;  ///< for messages: "line 3 of 'a.yaml'", "argument 'optimizer.lr=2e-3'"
};

/// YAML text as settings, in its order. Throws Error{usage} on what is not YAML, too deep, or a key
/// twice. `what` names the text in errors. Pure; fuzzed.
std::vector<Setting> parse_yaml(std::string_view text, std::string_view what);
/// "key=value" as a setting; value is YAML ("[0.1, 1]" is a list).
Setting parse_override(std::string_view argument);
/// Several; what is wrong with any of them is said at once.
std::vector<Setting> parse_overrides(const std::vector<std::string>& overrides);

/// The settings of a file, of none for "", and those of the command line after them.
std::vector<Setting> read_settings(const std::string& path,
                                   const std::vector<std::string>& overrides);
/// The kind of training that these ask for (train/kind.h).
const Kind& kind_of(std::span<const Setting> settings);
/// Whether these ask for adapters, by a 'lora.rank' other than 0.
bool sets_adapters(std::span<const Setting> settings);

/// The recipe that stands for the defaults where a run continues an earlier one as its next stage.
struct EarlierRecipe {
  std::vector<Setting> settings;  ///< all of it; keys that there are no more are left out
  /// The earlier run, as messages name it. "": they are the run's own, which goes on, and is
  /// compared when its data are known (train/state/beginning.h).
  std::string run;
};

/// What the model that a run begins from says about it (train/state/beginning.h).
struct Beginning {
  /// A setting that says otherwise is an error, and all of them are listed.
  models::ModelConfig model;
  models::LoraOptions adapters;  ///< that the run goes on with; of rank 0: none
  /// Instead of the defaults. Where there is facts.scale no setting may say another whitening.
  DiffusionRecipe diffusion;
  models::ModelFacts facts;
  /// Of a next stage: what settings may change follows from it then (changed_settings), not from
  /// the model.
  std::optional<EarlierRecipe> earlier;
};

/// Applies the settings in order to the defaults, or to what the run begins from, and checks the
/// result. What is wrong with any of the settings is said at once.
Recipe make_recipe(std::span<const Setting> settings, const Beginning* beginning = nullptr);
/// Throws Error{usage} if the recipe leaves the whole size of a model that begins anew to the
/// defaults, which are those of a large one.
void check_size(const Recipe& recipe);
/// Every field, by section, as YAML that make_recipe makes the same recipe.
std::string to_yaml(const Recipe& recipe);
/// The same as {"section":{"key":value}}.
Json to_json(const Recipe& recipe);

/// "'data.tokens' is 256"; of a default that nobody set "'data.tokens' is 8192 (default)", so that
/// no message blames its reader for what he did not write. Throws std::logic_error for a key that
/// recipes of the type do not have.
std::string describe_setting(const Recipe& recipe, const std::string& key);

/// Whether recipes of the type have that key.
bool has_key(const Recipe& recipe, const std::string& key);
/// Calls `check`, with which a model checks its configuration. To what it throws it adds, of the
/// fields that are named there, which are defaults: models know nothing of recipes.
void check_model(const Recipe& recipe, const std::function<void()>& check);

/// Which settings are compared. A run keeps all that it is told, but for learning rate, lengths,
/// intervals and how memory is used, which are `free`; its next stage keeps fewer
/// (train/state/next_stage.h). How ranks share the work is never compared: nothing is kept of it.
enum class Compared { kept, free, kept_by_stages };
/// What differs between the recipe of a checkpoint (to_json) and this one, as "key: old -> new".
std::vector<std::string> changed_settings(const Json& old, const Recipe& now,
                                          Compared which = Compared::kept);

}  // namespace vfm::train
