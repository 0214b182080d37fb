// All fields of a recipe, by their keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vfm::train {

struct Field;  // train/recipe/recipe_field.h
struct Recipe;

/// The allowed values of 'model.type'.
std::vector<std::string> model_types();
/// All fields of a recipe of its model.type. They hold references into `recipe`.
std::vector<Field> fields_of(Recipe& recipe);
/// The defaults of a recipe of this model.type and diffusion.process. Its own diffusion.process is
/// the default of the type.
Recipe usual_recipe(const Recipe& recipe);
/// The field with that key, or nullptr.
const Field* find_field(const std::vector<Field>& fields, const std::string& key);
/// The known key that is nearest to `key`, for messages. A key whose last word equals `key`, as
/// when the section was forgotten, counts as very near.
std::string nearest_key(const std::vector<Field>& fields, const std::string& key);

}  // namespace vfm::train
