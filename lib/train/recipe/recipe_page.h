// A recipe explained: for the user of one, where each value comes from; for the manual, every key.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "train/recipe/recipe_file.h"

namespace vfm::train {

/// to_yaml() with a comment behind each value: where it comes from. `settings` are those that the
/// recipe was made of. `begun` names the model or run that it begins from; "": none.
std::string explained_yaml(const Recipe& recipe, std::span<const Setting> settings,
                           const std::string& begun);

/// The meaning of a key, for the manual.
struct KeyWords {
  std::string_view key, unit, words;
};
/// Each key of any type of model has one (tests/unit/train/recipe_test.cc).
std::span<const KeyWords> key_words();

/// Every key of every type of model, in scdoc's markup, by sections: its default and values, its
/// unit, which types have it, what it means. Behind the name stands '*' if it may change when a run
/// is resumed, '+' if it may change in a next stage.
std::string recipe_manual();

}  // namespace vfm::train
