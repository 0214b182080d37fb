// SPDX-License-Identifier: Apache-2.0
#include "train/data/ahead_window.h"

#include <algorithm>

namespace vfm::train {

double bytes_ahead(const Recipe& recipe, double own, bool shared) {
  // The steps after the one that is at work.
  const auto steps = static_cast<double>(std::min(kMostStepsAhead, recipe.train.steps - 1));
  const double most = std::min(static_cast<double>(recipe.data.ahead), steps * own);
  return shared ? std::max(most, own) : most;
}

}  // namespace vfm::train
