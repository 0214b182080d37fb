// The learning rate as a function of the step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "train/recipe/recipe.h"

namespace vfm::train {

/// The rate of update `step` (0 is the first) in a run of `steps`. It is lr*(step+1)/warmup while
/// step < warmup. Then it is lr ("constant"), or falls from lr to final*lr at the last step, along
/// a line or a half cosine.
double learning_rate(const OptimizerRecipe& optimizer, const ScheduleRecipe& schedule,
                     std::int64_t step, std::int64_t steps);

}  // namespace vfm::train
