// Limits that the configurations of networks are checked against.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.h"

namespace vfm::models {

/// Limits far beyond any model. Larger values would overflow when costs are counted.
inline constexpr int kMostWidth = 1 << 20, kMostLayers = 1 << 12, kLongestTable = 1 << 16;

/// Throws Error{usage}, "model configuration: 'FIELD' is VALUE, must be WHAT", unless the condition
/// holds. If WHAT depends on other fields, it names them in quotes, with their values.
template <class Value>
void need_field(bool condition, const char* field, const Value& value, std::string_view what) {
  if (!condition) fail_usage("model configuration: '{}' is {}, must be {}", field, value, what);
}

}  // namespace vfm::models
