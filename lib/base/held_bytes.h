// What values hold beside their own size, in bytes: the weight of results that wait
// (base/ordered.h). Near enough for bounds of memory; what an allocator adds is not in it.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json_fwd.h"

namespace vfm {

inline std::size_t held_bytes(const std::string& text) {
  return text.size();
}
std::size_t held_bytes(const Json& value);
/// Of a type that owns memory beside its size there must be a held_bytes() in its own namespace, or
/// above.
template <class T>
std::size_t held_bytes(const std::vector<T>& list) {
  std::size_t bytes = list.size() * sizeof(T);
  if constexpr (!std::is_trivially_copyable_v<T>)
    for (const T& one : list)
      bytes += held_bytes(one);
  return bytes;
}

}  // namespace vfm
