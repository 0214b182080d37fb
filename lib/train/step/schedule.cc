// SPDX-License-Identifier: Apache-2.0
#include "train/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vfm::train {

double learning_rate(const OptimizerRecipe& optimizer, const ScheduleRecipe& schedule,
                     std::int64_t step, std::int64_t steps) {
  const double lr = optimizer.lr;
  if (step < schedule.warmup)
    return lr * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
  if (schedule.shape == "constant") return lr;
  const double span = static_cast<double>(std::max<std::int64_t>(1, steps - 1 - schedule.warmup));
  const double done = std::min(1.0, static_cast<double>(step - schedule.warmup) / span);
  const double left =
      schedule.shape == "linear" ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  return lr * (schedule.final + (1 - schedule.final) * left);
}

}  // namespace vfm::train
