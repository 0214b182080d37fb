// The keys of 'data' that say what is made of clips that are encoded while training, and what does
// not go with the options of encoding. Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/recipe/data_recipe.h"

namespace vfm::train {

class FieldList;
struct RunOptions;

/// Adds them to the section 'data'.
void add_clip_fields(FieldList& list, DataRecipe& data);
/// Throws Error{usage} for options of encoding that do not go with the others, or not without
/// --tokenizer. Of folders that settle_folders() has set (train/data/blend.h).
void check_clip_options(const RunOptions& options);
/// Warns of keys that are set, and without effect on latents. For one rank.
void warn_of_clip_settings(const RunOptions& options);

}  // namespace vfm::train
