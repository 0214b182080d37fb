// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_sizes.h"

#include <numbers>

namespace vfm::models {

double LlamaRope::frequency(double plain) const {
  const double turns = original * plain / (2 * std::numbers::pi);
  if (turns < low) return plain / factor;
  if (turns > high) return plain;
  const double share = (turns - low) / (high - low);
  return (1 - share) * plain / factor + share * plain;
}

}  // namespace vfm::models
