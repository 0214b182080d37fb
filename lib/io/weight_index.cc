// SPDX-License-Identifier: Apache-2.0
#include "io/weight_index.h"

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"

namespace vfm::io {

WeightIndex read_weight_index(const std::string& path) {
  WeightIndex index;
  if (!path.ends_with(".json")) {
    index.files.insert(base_name(path));
    return index;
  }
  const std::string what = fmt::format("'{}'", path);
  const Json json = parse_json(read_file(path, kMostModelJson), what);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail("{} has no 'weight_map'", what);
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    // A name with a slash could lead out of the folder.
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      fail("{} gives no proper file for '{}'", what, tensor);
    index.file_of[tensor] = file.get<std::string>();
    index.files.insert(index.file_of[tensor]);
  }
  return index;
}

void check_weight_index(const WeightIndex& index, const TensorSet& set) {
  for (const auto& [tensor, file] : index.file_of)
    if (!set.find(tensor))
      fail("'{}' says that '{}' holds '{}', it does not", set.path(), file, tensor);
}

}  // namespace vfm::io
