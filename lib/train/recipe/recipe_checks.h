// Settings of a recipe that exclude each other for any kind of training. Used by recipe_file.cc.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/recipe/recipe.h"

namespace vfm::train {

/// Each throws Error{usage}. `begins`: the run begins from a model or an earlier run.
void check_adapters(const Recipe& recipe, bool begins);
void check_offloaded(const Recipe& recipe);
void check_context(const Recipe& recipe);
void check_pipeline(const Recipe& recipe);
void check_shards(const Recipe& recipe);
void check_optimizer(const Recipe& recipe);

}  // namespace vfm::train
