// What settings of a recipe cannot be together, whatever the kind of training. For recipe_file.cc.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/recipe/recipe.h"

namespace vfm::train {

/// Each throws Error{usage}. `begins`: from a model, or from an earlier run.
void check_adapters(const Recipe& recipe, bool begins);
void check_offloaded(const Recipe& recipe);
void check_context(const Recipe& recipe);
void check_pipeline(const Recipe& recipe);
void check_shards(const Recipe& recipe);

}  // namespace vfm::train
