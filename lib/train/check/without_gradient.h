// Parameters that the samples of a step leave no gradient but rounding, and why: what a comparison
// of gradients (train/check/check_parallel.h) can say nothing of.
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

/// The samples of a run's first step, with the texts that it leaves them. `recipe` is fitted to the
/// data.
std::vector<data::Entry> first_samples(const Recipe& recipe, const Dataset& data);

/// Why the parameter has no gradient in a step of these samples; "": it has one.
std::string why_no_gradient(const std::vector<data::Entry>& samples, const Recipe& recipe,
                            std::string_view parameter);

}  // namespace vfm::train
