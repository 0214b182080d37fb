// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/json_fields.h"

#include <algorithm>

#include "base/json.h"

namespace vfm::columns {
namespace {

/// A part of a path: a member of an object, or a place in a list, counted from 0.
const Json* part_of(const Json& value, const std::string& name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  const bool number = !name.empty() && name.size() < 10 &&
                      name.find_first_not_of("0123456789") == std::string::npos;
  if (!value.is_array() || !number) return nullptr;
  const std::size_t place = std::stoul(name);
  return place < value.size() ? &value[place] : nullptr;
}

}  // namespace

const Json* find_field(const Json& object, const std::string& name) {
  const Json* value = part_of(object, name);
  if (value == nullptr && name.find('.') != std::string::npos) {
    value = &object;
    for (std::size_t begin = 0; value != nullptr && begin <= name.size();) {
      const std::size_t dot = std::min(name.find('.', begin), name.size());
      value = part_of(*value, name.substr(begin, dot - begin));
      begin = dot + 1;
    }
  }
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace vfm::columns
