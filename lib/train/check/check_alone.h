// The steps of a proof (train/check/check_steps.h) as one rank makes them, with the whole model:
// what all ranks together are compared with (train/check/check_parallel.h). Thread-safety: the
// thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/check/check_steps.h"
#include "train/run.h"

namespace vfm::train {

/// Names of what is compared besides gradients, each of which has its parameter's.
inline constexpr const char *kLoss = "loss", *kNorm = "gradient norm", *kUpdate = "update",
                            *kAverage = "average", *kLaterUpdate = "update of steps 2 to 4",
                            *kLaterAverage = "average of steps 2 to 4", *kValidation = "validation";
/// "loss of step 2", of the later step `i`.
std::string of_step(const char* what, std::size_t i);

/// What one rank made of the steps.
struct Alone {
  double memory = 0;  ///< that it needed
  double loss = 0, norm = 0;
  std::map<std::string, Tensor> gradients;  ///< of the first step, f32, on the host
  Changes changes;
  LaterStart start;
  LaterSteps later;
  std::map<std::string, std::string> without;  ///< why a parameter has no gradient
  /// By what is compared: differences between bf16 and f32; of f32 none.
  std::map<std::string, double> own;
};

/// |difference| over |to|.
double relative(double difference, double to);

/// The weights that the steps begin with. A collective of `world`.
void begin_check(const RunOptions& options, const Trainer& trainer, dist::World& world);
/// Of a run of `recipe` on so many ranks; on one of them. Throws Error{usage} if it has no memory
/// for it.
Alone step_alone(const RunOptions& options, const Recipe& recipe, int ranks, const Dataset& data);

}  // namespace vfm::train
