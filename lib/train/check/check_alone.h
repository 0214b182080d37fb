// The steps of the check (train/check/check_steps.h) on one rank with the whole model. They are the
// reference for all ranks together (train/check/check_parallel.h). Thread-safety: the thread that
// made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/check/check_steps.h"
#include "train/run.h"

namespace vfm::train {

/// Names of compared values. Gradients have the names of their parameters.
inline constexpr const char *kLoss = "loss", *kNorm = "gradient norm", *kUpdate = "update",
                            *kAverage = "average", *kLaterUpdate = "update of steps 2 to 4",
                            *kLaterAverage = "average of steps 2 to 4", *kValidation = "validation";
/// The name of a value of later step `i`: "loss of step 2" for `i` = 0.
std::string of_step(const char* what, std::size_t i);

/// The results of the steps on one rank.
struct Alone {
  double memory = 0;  ///< bytes of memory that the steps need
  double loss = 0, norm = 0;
  std::map<std::string, Tensor> gradients;  ///< of the first step, f32, on the host
  Changes changes;
  LaterStart start;
  LaterSteps later;
  std::map<std::string, std::string> without;  ///< why a parameter has no gradient; "": it has one
  /// Relative differences that rounding makes, by name of the value. For a run in bf16: those
  /// between bf16 and f32. For a run in f32, of gradients: those that a change of the last bits of
  /// the weights makes.
  std::map<std::string, double> own;
};

/// Returns |difference| / |to|.
double relative(double difference, double to);

/// Sets the weights with which the steps begin. A collective of `world`.
void begin_check(const RunOptions& options, const Trainer& trainer, dist::World& world);
/// Makes the steps of a run of `recipe` on `ranks` ranks; call it on one rank. Throws Error{usage}
/// if that rank has not enough memory.
Alone step_alone(const RunOptions& options, const Recipe& recipe, int ranks, const Dataset& data);

}  // namespace vfm::train
