// The keys of 'data' that say what is made of clips that are encoded while training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/data_recipe.h"

namespace vfm::train {

class FieldList;

/// Adds them to the section 'data'.
void add_clip_fields(FieldList& list, DataRecipe& data);
/// Those that are not as they are by default.
std::vector<std::string> clip_settings(DataRecipe data);

}  // namespace vfm::train
