// Reading fields of a network's config.json that may be absent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {

/// What `read` makes of the JSON of a file. Its errors, which know fields, begin with the file.
template <class Read>
auto in_file(const std::string& path, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error("'" + path + "': " + error.what(), error.kind());
  }
}

/// Throws Error{usage} for a number below 0 or above what any field may be.
inline int integer_field(const Json& config, const char* name, int fallback) {
  const auto value = get_integer(config, name);
  if (value && (*value < 0 || *value > 1 << 28))
    fail_usage("model configuration: '{}' is out of range", name);
  return value ? static_cast<int>(*value) : fallback;
}

/// N numbers. Throws Error{usage} if they are not, or do not fit T.
template <class T, std::size_t N>
std::array<T, N> numbers_field(const Json& config, const char* name, std::array<T, N> fallback) {
  const auto found = config.find(name);
  if (found == config.end() || found->is_null()) return fallback;
  bool fits = found->is_array() && found->size() == N;
  for (std::size_t i = 0; fits && i < N; ++i) {
    const Json& value = (*found)[i];
    if constexpr (std::is_integral_v<T>)
      fits = value.is_number_integer() && value >= 0 && value <= std::numeric_limits<T>::max();
    else
      fits = value.is_number();
  }
  if (!fits) fail_usage("model configuration: '{}' must be {} numbers", name, N);
  return found->template get<std::array<T, N>>();
}

}  // namespace vfm::models
