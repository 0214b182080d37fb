// Finds parameters whose gradient is only rounding with the samples of a step, and says why. A
// comparison of gradients (train/check/check_parallel.h) proves nothing about them.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/latents.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// The samples of a run's first step; samples whose text is dropped have no text tokens. `recipe`
/// is fitted to the data.
std::vector<data::Entry> first_samples(const Recipe& recipe, const Dataset& data);

/// Why the parameter has no gradient in a step of these samples; "" if it has one.
std::string why_no_gradient(const std::vector<data::Entry>& samples, const Recipe& recipe,
                            std::string_view parameter);

}  // namespace vfm::train
