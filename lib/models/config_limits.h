// Limits that the configurations of networks are checked against.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.h"

namespace vfm::models {

/// Far beyond any model: larger ones would overflow when costs are counted.
inline constexpr int kMostWidth = 1 << 20, kMostLayers = 1 << 12, kLongestTable = 1 << 16;

/// Throws Error{usage}, "model configuration: 'FIELD' is VALUE, must be WHAT", unless the condition
/// holds. WHAT names other fields that it depends on in quotes, with their values.
template <class Value>
void need_field(bool condition, const char* field, const Value& value, std::string_view what) {
  if (!condition) fail_usage("model configuration: '{}' is {}, must be {}", field, value, what);
}

}  // namespace vfm::models
