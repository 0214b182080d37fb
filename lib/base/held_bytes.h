// Counts the bytes that values own beyond their sizeof, to limit the memory of waiting results
// (share/ordered.h). The allocator's own memory is not included. Thread-safety: any thread.
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
/// If T owns memory, T's namespace or an enclosing namespace must have a held_bytes() for T.
template <class T>
std::size_t held_bytes(const std::vector<T>& list) {
  std::size_t bytes = list.size() * sizeof(T);
  if constexpr (!std::is_trivially_copyable_v<T>)
    for (const T& one : list)
      bytes += held_bytes(one);
  return bytes;
}

}  // namespace vfm
