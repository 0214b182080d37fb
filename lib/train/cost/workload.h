// What a step of a recipe has to do: of its data, or of what stands for them.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/latents.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

struct RunOptions;

/// Means over one epoch; of many samples over its first blocks (data/order.h); or what stands for
/// them.
struct Workload {
  double samples_a_step = 0, tokens_a_step = 0, flops_a_step = 0, fill = 1;
  std::vector<data::Entry> pack;  ///< the fullest
  data::Entry shortest;           ///< the sample of fewest tokens
  /// Floating point operations of each pack of the first epoch, in order; of the fullest.
  std::vector<double> pack_flops;
  double fullest_flops = 0;
  /// Seconds that reading the samples of a step takes here, one after the other; 0: not known.
  double read_seconds = 0;
  std::string source;
};

/// `recipe` is fitted to the data (Dataset::fit).
Workload measure(const Recipe& recipe, const Dataset& data);
/// Reads some of the samples, as a run's first step would, and says how long those of a step take;
/// samples that cannot be read are left out.
double time_reading(const Recipe& recipe, const Dataset& data);
/// Without data: one sample a pack. `recipe` is fitted (Kind::fit_without_data).
Workload assume(const Recipe& recipe);

}  // namespace vfm::train
