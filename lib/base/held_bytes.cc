// SPDX-License-Identifier: Apache-2.0
#include "base/held_bytes.h"

#include "base/json.h"

namespace vfm {

std::size_t held_bytes(const Json& value) {
  std::size_t bytes = 0;
  if (value.is_string())
    bytes = sizeof(std::string) + value.get_ref<const std::string&>().size();
  else if (value.is_object())
    for (const auto& [key, member] : value.items())
      bytes += sizeof(Json::object_t::value_type) + key.size() + held_bytes(member);
  else if (value.is_array())
    for (const Json& one : value)
      bytes += sizeof(Json) + held_bytes(one);
  return bytes;
}

}  // namespace vfm
