// The steps of the check of a layout (train/check/check_parallel.h), on one rank and on all.
//
// The first step tests the gradients of all elements. It is clipped, so that it depends on the
// global norm. Its epsilon is so large that it is nearly linear in the gradient, whereas AdamW's
// own first step is each gradient's sign. The later steps have the run's own epsilon, schedule,
// decay and average. Their moments are drawn at random, about as large as the gradients make them,
// so they test an element's moments as much as its gradient. They are not clipped. Their learning
// rate changes weights by a tenth, so that the loss shows whether a step used the weights of the
// step before. At the end the average replaces the weights for a validation. Thread-safety: the
// thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/data/dataset.h"
#include "train/step/trainer.h"

namespace vfm::train {

inline constexpr int kLaterSteps = 3;

/// Changes by updates, f32 on the host, by parameter: of the value, and of the average if there is
/// one.
struct Changes {
  std::vector<Tensor> values, average;
};

/// Results of the later steps.
struct LaterSteps {
  std::vector<double> losses, norms;
  Changes changes;        ///< changes of all later steps together
  double validation = 0;  ///< loss; on rank 0
};

/// The recipe of the first step. It averages more often than the run if the run averages rarely.
Recipe recipe_of_first(const Recipe& own);
StepResult first_step(Trainer& trainer, Changes& changes);
/// Changes each trained weight by about the last bit of an f32, up or down. A collective.
void change_last_bits(const Trainer& trainer, std::uint64_t seed);

/// How the later steps begin, the same on one rank and on all.
struct LaterStart {
  /// Learning rate of the first of them: a tenth of the weights' root mean square.
  double rate = 0;
  /// The size of each parameter's moments: the root mean square of its gradient, or of all
  /// gradients if its own is only rounding.
  std::vector<double> sizes;
};
/// Computes it on one rank after the first step. `without` says why parameters have no gradient, by
/// name.
LaterStart start_of_later(const Trainer& trainer,
                          const std::map<std::string, std::string>& without);
/// Runs the later steps. The trainer keeps a reference to `recipe`, which is that of the first
/// step; it becomes the recipe of the later steps of the run's `own`. A collective.
LaterSteps later_steps(Trainer& trainer, Recipe& recipe, const Recipe& own, const Dataset& data,
                       const LaterStart& start, const std::function<void(Trainer&)>& after);

/// Finds ranks that compute with wrong weights, gathered ones included: weights that differ from
/// those of another rank, or from those that the rank itself keeps. Returns on rank 0 a
/// description, or "" if all are right. A collective.
std::string stale_weights(const Trainer& trainer);

}  // namespace vfm::train
