// The keys of 'data' for clips that are encoded during training, and checks of the options for
// encoding. Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/recipe/data_recipe.h"

namespace vfm::train {

class FieldList;
struct RunOptions;

/// Adds these keys to the section 'data'.
void add_clip_fields(FieldList& list, DataRecipe& data);
/// Throws Error{usage} for options of encoding that conflict with others, or that need --tokenizer.
/// Call it after settle_folders() (train/data/blend.h).
void check_clip_options(const RunOptions& options);
/// Warns of keys that are set but have no effect on latents. Call it on one rank.
void warn_of_clip_settings(const RunOptions& options);

}  // namespace vfm::train
