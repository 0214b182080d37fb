// A recipe explained: for its user the origin of each value, for the manual every key.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/recipe/recipe_file.h"

namespace vfm::train {

/// to_yaml() with a comment after each value that says where the value comes from. `settings` are
/// those of the recipe. `begun` is the model or run that it begins from, or "".
std::string explained_yaml(const Recipe& recipe, std::span<const Setting> settings,
                           const std::string& begun);

/// The meaning of a key, for the manual.
struct KeyWords {
  std::string key, unit, words;
};
/// The words for each key of every type of model (tests/unit/train/recipe_test.cc). Those for keys
/// of one kind of network are of its architecture (models::FieldNote).
std::vector<KeyWords> key_words();

/// Every key of every type of model, by section, in scdoc's markup: default, allowed values, unit,
/// types that have it, and meaning. A '*' after the name marks keys that may change when a run is
/// resumed, a '+' keys that may change in a next stage.
std::string recipe_manual();

}  // namespace vfm::train
