// What the configurations of networks are checked by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

namespace vfm::models {

/// Far beyond any model: what is counted with more would overflow.
inline constexpr int kMostWidth = 1 << 20, kMostLayers = 1 << 12, kLongestTable = 1 << 16;

/// Throws Error{usage}, "model configuration: 'FIELD' must be WHAT", unless the condition holds.
inline void need_field(bool condition, const char* field, const char* what) {
  if (!condition) fail_usage("model configuration: '{}' must be {}", field, what);
}

}  // namespace vfm::models
