// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/clip_fields.h"

#include "train/recipe_field.h"

namespace vfm::train {

void add_clip_fields(FieldList& list, DataRecipe& data) {
  list.number("frames", data.frames, between(1, 65536))
      .number("size", data.size, between(16, 8192))
      .number("fps", data.fps, between(0, 1000))
      .choice("crop", data.crop, {"random", "centre"})
      .number("flip", data.flip, between(0, 1))
      .names("captions", data.captions);
}

std::vector<std::string> clip_settings(DataRecipe data) {
  DataRecipe usual;
  FieldList now, before;
  add_clip_fields(now.section("data"), data);
  add_clip_fields(before.section("data"), usual);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < now.fields.size(); ++i)
    if (now.fields[i].get() != before.fields[i].get()) keys.push_back(now.fields[i].key);
  return keys;
}

}  // namespace vfm::train
