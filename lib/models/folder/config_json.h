// Reads fields of a network's config.json that may be missing.
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

/// Returns the result of `read`, which reads JSON of the file `path`. Puts the path before messages
/// of its errors, which only name fields.
template <class Read>
auto in_file(const std::string& path, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error("'" + path + "': " + error.what(), error.kind());
  }
}

/// An integer. Throws Error{usage} if it is below 0 or above 2^28.
inline int integer_field(const Json& config, const char* name, int fallback) {
  const auto value = get_integer(config, name);
  if (value && (*value < 0 || *value > 1 << 28))
    fail_usage("model configuration: '{}' is out of range", name);
  return value ? static_cast<int>(*value) : fallback;
}

/// N numbers. Throws Error{usage} if they are not N numbers, or do not fit T.
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
