// The steps that a proof of a layout makes (train/check/check_parallel.h), on one rank and on all.
//
// The first is one that says something of all elements: clipped, so that it depends on the global
// norm, and with an epsilon so large that it is nearly linear in the gradient; AdamW's own first
// step is each gradient's sign. Those that follow are the run's own, with its epsilon, schedule,
// decay and average, and with moments that are not zero, drawn as large as the gradients make them:
// so they say of an element's moments as much as of its gradient. They are not clipped, and the
// rate is such that weights change by a tenth: what is from the step before is then seen in the
// loss. At last the average takes the weights' place for a validation.
// Thread-safety: the thread that made the world.
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

/// What updates changed, f32 on the host, by parameter: in its value and in its average, if there
/// is one.
struct Changes {
  std::vector<Tensor> values, average;
};

/// What the steps after the first made.
struct LaterSteps {
  std::vector<double> losses, norms;
  Changes changes;        ///< of all of them
  double validation = 0;  ///< loss; on rank 0
};

/// The recipe of the first step. A run that averages seldom does so here among few steps.
Recipe recipe_of_first(const Recipe& own);
StepResult first_step(Trainer& trainer, Changes& changes);

/// What they begin with, the same on one rank and on all.
struct LaterStart {
  double rate = 0;  ///< of the first of them: a tenth of the weights' root mean square
  /// Of each parameter how large its moments are, in their order: the root mean square of its
  /// gradient, or of all where it has none but rounding.
  std::vector<double> sizes;
};
/// Of one rank, after the first step. `without`: why parameters have no gradient, by name.
LaterStart start_of_later(const Trainer& trainer,
                          const std::map<std::string, std::string>& without);
/// `recipe` is that of the first step, which the trainer keeps, and becomes that of these, of the
/// run's `own`. A collective.
LaterSteps later_steps(Trainer& trainer, Recipe& recipe, const Recipe& own, const Dataset& data,
                       const LaterStart& start, const std::function<void(Trainer&)>& after);

/// Of the weights that ranks compute with, gathered ones too: a rank that has others than another
/// one, or than it should have by what it keeps itself. In words, on rank 0; "": there is none. A
/// collective.
std::string stale_weights(const Trainer& trainer);

}  // namespace vfm::train
