// The work in a step of a recipe, on its data or on an assumption in their place.
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

/// Means over one epoch; with many samples, over its first blocks (data/order.h).
struct Workload {
  double samples_a_step = 0, tokens_a_step = 0, flops_a_step = 0, fill = 1;
  std::vector<data::Entry> pack;  ///< fullest pack
  data::Entry shortest;           ///< the sample of fewest tokens
  /// Floating point operations of each pack of the first epoch, in order; and of the fullest pack.
  std::vector<double> pack_flops;
  double fullest_flops = 0;
  /// Seconds to read the samples of a step one after the other on this machine; 0: not known.
  double read_seconds = 0;
  std::string source;
};

/// Measures the data. `recipe` is fitted to them (Dataset::fit).
Workload measure(const Recipe& recipe, const Dataset& data);
/// Reads some of the samples, as a run's first step would, and returns the seconds for those of one
/// step. Samples that cannot be read are left out.
double time_reading(const Recipe& recipe, const Dataset& data);
/// Assumes one sample a pack, without data. `recipe` is fitted (Kind::fit_without_data).
Workload assume(const Recipe& recipe);

}  // namespace vfm::train
